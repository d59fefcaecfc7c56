"""By what a day is computed: the version of the code and the configuration, which is the contract's part in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

ENGINE_SEMANTICS = 1
"""Raised when the engine itself makes other rows from the same input; golden digests in the tests guard it."""


DIRTY = "+dirty"
"""Marks a commit from which the code differs that was run."""


def shown_commits(commits: str) -> str:
    """Return one commit, or several joined by commas, each as short as people read it."""
    return ", ".join(commit[:12] + DIRTY * commit.endswith(DIRTY) for commit in commits.split(", "))


@dataclass(frozen=True, order=True)
class Version:
    """By what a day was, or would be, computed.

    Args:
        code: version of all code that the transform can reach; empty where nobody recorded it.
        configuration: hash of the contract's meaningful parts; empty where nobody recorded it.
    """

    code: str = ""
    configuration: str = ""

    def differs(self, now: Version) -> tuple[bool, bool]:
        """Return whether the code, and whether the configuration, is known to be another one; the unknown is not."""
        return self.code not in ("", now.code), self.configuration not in ("", now.configuration)


def hand_set(version: str) -> str:
    """Return the code version that somebody set by hand; the engine's own part in it still counts."""
    return f"{version}+engine{ENGINE_SEMANTICS}"


def code_version(code: Iterable[str]) -> str:
    """Return a hash of all code that a table's transform can reach, and of the engine's part in it.

    Args:
        code: as `planning.code.reach` finds it: normalised, and in a fixed order.
    """
    total = hashlib.sha256(f"engine {ENGINE_SEMANTICS}".encode())
    for part in code:
        total.update(f"|{part}".encode())
    return total.hexdigest()[:16]
