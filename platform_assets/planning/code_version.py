"""By what a day is computed: the version of the code and the configuration, which is the contract's part in it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

ENGINE_SEMANTICS = 1
"""Raised when the engine itself makes other rows from the same input; golden digests in the tests guard it."""


@dataclass(frozen=True)
class Version:
    """By what a day was, or would be, computed.

    Args:
        code: version of the transform; empty where nobody recorded it.
        configuration: hash of the contract's meaningful parts; empty where nobody recorded it.
    """

    code: str = ""
    configuration: str = ""

    def __str__(self) -> str:
        return f"{self.code}+{self.configuration}"

    def differs(self, now: Version) -> tuple[bool, bool]:
        """Whether the code, and whether the configuration, is known to be another one; what is unknown is not."""
        return self.code not in ("", now.code), self.configuration not in ("", now.configuration)


def hand_set(version: str) -> str:
    """The code version that somebody set by hand; the engine's own part in it still counts."""
    return f"{version}+engine{ENGINE_SEMANTICS}"


def code_version(sources: Mapping[str, str]) -> str:
    """A hash of the normalised sources of some modules: comments, docstrings and formatting do not count.

    Args:
        sources: source text by module name.

    Raises:
        SyntaxError: a source is not Python.
    """
    total = hashlib.sha256(f"engine {ENGINE_SEMANTICS}".encode())
    for name in sorted(sources):
        total.update(f"|{name}|{_normalised(sources[name])}".encode())
    return total.hexdigest()[:16]


def _normalised(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = body[1:] or [ast.Pass()]
    return ast.unparse(tree)
