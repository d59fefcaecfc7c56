"""Rows set aside: refused at parsing, or quarantined by a rule; and which of them a person means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

WHOLE_FILE = "whole file"
"""Class of error of a file that was refused whole."""


@dataclass(frozen=True)
class AsideRow:
    """A row that was set aside, or all rows of a file that was refused whole.

    Args:
        table: the raw table that refused it, or the silver table whose rule it breaks.
        day: of the event; of a refused row, when it arrived.
        error: class of error: the rules that it breaks, or its first fault without the value.
        reason: all that is wrong with it; may quote values.
        payload: the row as it was delivered; nothing of a whole file.
        number: of a refused row in its file, from 1; None where that is not known.
        place: of a refused row among the versions that its file brought; None likewise.
        attempts: how often it was set aside.
        discarded: who needs it no more, and why.
    """

    table: str
    day: date
    error: str
    arrival: str
    reason: str = ""
    payload: str = ""
    rows: int = 1
    number: int | None = None
    place: int | None = None
    attempts: int = 1
    discarded: str = ""


@dataclass(frozen=True)
class AsideSelection:
    """Which rows a person means: of a table, of days, of a class of error, of an arrival; all by default."""

    table: str | None = None
    days: frozenset[date] | None = None
    error: str | None = None
    arrival: str | None = None

    def has(self, row: AsideRow) -> bool:
        """Return whether a row is among them."""
        asked = ((self.table, row.table), (self.error, row.error), (self.arrival, row.arrival))
        return (self.days is None or row.day in self.days) and all(mine in (None, its) for mine, its in asked)

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.table, self.error, self.arrival, *map(str, sorted(self.days or ()))]))


def grouped(rows: Iterable[AsideRow]) -> list[dict[str, Any]]:
    """Count rows by table, day and class of error, in this order."""
    groups: defaultdict[tuple[str, date, str], list[AsideRow]] = defaultdict(list)
    for row in rows:
        groups[row.table, row.day, row.error].append(row)
    return [
        {
            **dict(zip(("table", "day", "error"), about, strict=True)),
            "rows": sum(row.rows for row in group),
            "attempts": max(row.attempts for row in group),
            "files": len({row.arrival for row in group}),
            "discarded": sum(row.rows for row in group if row.discarded),
        }
        for about, group in sorted(groups.items())
    ]
