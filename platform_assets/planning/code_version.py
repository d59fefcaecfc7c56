"""The code version of a domain: changes when its transforms compute something else, not when they read better."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping

ENGINE_SEMANTICS = 1
"""Raised when the engine itself makes other rows from the same input; golden digests in the tests guard it."""


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
