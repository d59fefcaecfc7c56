"""What an audit looks at and finds, as plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from platform_assets.planning.selection import Selection

Check = Literal["chain", "logs", "commits", "files", "rows", "contents", "digests", "ledger", "decisions", "anchor"]
CHECKS: dict[Check, str] = {
    "chain": "releases and their manifests",
    "logs": "commits of tables",
    "commits": "days as published",
    "files": "files",
    "rows": "days counted",
    "contents": "files read",
    "digests": "days hashed",
    "ledger": "publications indexed",
    "decisions": "decisions of people",
    "anchor": "heads compared",
}
"""Every check, in the order it is made, with what it counts."""


@dataclass(frozen=True)
class Scope(Selection):
    """A selection that is looked at, and how closely.

    Args:
        tables: as of every selection. The chain is always looked at as a whole.
        fast: only the chain and the logs, neither what commits changed nor any file.
        every_release: also files that only older releases refer to.
        read_bytes: about how much of the files is read page by page; None is all of it, 0 nothing.
    """

    fast: bool = False
    every_release: bool = False
    read_bytes: int | None = 0


@dataclass(frozen=True)
class Fault:
    """Something that is not as it should be.

    Args:
        what: one sentence that names file, table or day.
    """

    check: Check
    what: str
    todo: str
    table: str = ""
    day: date | None = None
    file: str = ""


@dataclass
class Findings:
    """What an audit has looked at and found so far.

    Args:
        notes: what a person should know though nothing is wrong.
        seen: how much every check looked at.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: Counter[Check] = field(default_factory=Counter)

    def fault(
        self, check: Check, what: str, todo: str, *, table: str = "", day: date | None = None, file: object = ""
    ) -> None:
        """Write down what is wrong."""
        self.faults.append(Fault(check, what, todo, table, day, str(file)))

    def of(self, check: Check) -> int:
        """Return how many faults a check found."""
        return sum(fault.check == check for fault in self.faults)
