"""Rows outside their day: late or ahead, refused at parsing, quarantined by a rule; and decisions about them.

A row is late or ahead by its arrival date, never by the clock, however often and whenever it is ingested. Late rows
wait for a person. Rows ahead wait for their day, unless a person decides otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from platform_assets.planning.windows import as_named
from platform_assets.records.decisions import Verdict

State = Literal["waiting", "ahead", "refused", "withdrawn"]


def late_table(raw_table: str) -> str:
    """Return the table of a raw table's waiting rows."""
    return f"late.{raw_table.partition('.')[2]}"


def days_late(arrival_date: date, day: date) -> int:
    """Return how many days after its day a row arrived; negative if it came before."""
    return (arrival_date - day).days


@dataclass(frozen=True)
class LateRows:
    """Waiting rows of one arrival and day: the subject of a decision.

    Args:
        state: whether they wait for a decision or their day, were refused, or their arrival was withdrawn.
        protected: why their day is protected; empty for other days.
    """

    table: str
    arrival: str
    arrival_date: date
    day: date
    rows: int
    amounts: Mapping[str, int | Decimal] = field(default_factory=dict)
    state: State = "waiting"
    decided: str = ""
    protected: str = ""

    @property
    def days_late(self) -> int:
        """Return how many days after their day they arrived; negative if before."""
        return days_late(self.arrival_date, self.day)

    @property
    def is_ahead(self) -> bool:
        """Return whether they arrived before their day."""
        return self.days_late < 0


@dataclass(frozen=True)
class LateSelection:
    """Late rows of a decision: those of an arrival, or of a table on some days.

    Args:
        table: a raw table; used if no arrival is given.
        most_days_late: only rows that came at most so many days after their day.
    """

    arrival: str | None = None
    table: str | None = None
    days: frozenset[date] = frozenset()
    most_days_late: int | None = None

    def __contains__(self, rows: LateRows) -> bool:
        if self.arrival is not None:
            return rows.arrival == self.arrival
        if self.most_days_late is not None and (rows.protected or not 0 <= rows.days_late <= self.most_days_late):
            return False  # an approval without a look at single rows opens no closed days
        return rows.table == self.table and rows.day in self.days

    def __str__(self) -> str:
        if self.arrival is not None:
            return self.arrival
        return f"{self.table} on {', '.join(as_named(self.days))}"


def open_to(verdict: Verdict, queue: Collection[LateRows], selection: LateSelection) -> tuple[LateRows, ...]:
    """Return the selected rows that such a decision can still change, by table, day and arrival.

    These are the waiting rows; and, since a refusal may have been a mistake, refused rows if their arrival is approved
    by name.
    """
    states = {"waiting", "ahead"}
    if verdict == "approval" and selection.arrival is not None:
        states.add("refused")
    selected = [rows for rows in queue if rows in selection and rows.state in states]
    return tuple(sorted(selected, key=lambda rows: (rows.table, rows.day, rows.arrival)))


def deep_restatement(queue: Collection[LateRows], table: str, most_days_late: int) -> LateSelection | None:
    """Return the rows of the periodic deep restatement of a table; None without any."""
    days = {rows.day for rows in queue if rows.table == table and rows.state == "waiting" and not rows.protected}
    selection = LateSelection(table=table, days=frozenset(days), most_days_late=most_days_late)
    return selection if open_to("approval", queue, selection) else None


def due_rows(queue: Collection[LateRows], last: date) -> tuple[LateRows, ...]:
    """Return rows that came ahead and whose day has come, unless a person decided otherwise."""
    return tuple(rows for rows in queue if rows.state == "ahead" and rows.day <= last)


@dataclass(frozen=True)
class LateCounts:
    """Numbers of waiting rows.

    Args:
        waiting: rows without a decision that do not enter by themselves.
        ahead: rows that wait for their day.
    """

    waiting: int = 0
    ahead: int = 0


def counts_of(queue: Collection[LateRows]) -> LateCounts:
    """Return the numbers of waiting rows of a queue."""
    waiting, ahead = (sum(rows.rows for rows in queue if rows.state == state) for state in ("waiting", "ahead"))
    return LateCounts(waiting, ahead)


WHOLE_FILE = "whole file"
"""Class of error of a file that was refused whole."""


@dataclass(frozen=True)
class AsideRow:
    """A row that was set aside, or all rows of a file that was refused whole.

    Args:
        table: the raw table that refused it, or the silver table whose rule it breaks.
        day: day of the event; for a refused row, of its arrival.
        error: class of error: the broken rules, or the first fault without the value.
        reason: all faults; may quote values.
        payload: the row as delivered; empty for a whole file.
        number: number of a refused row in its file, from 1; None if unknown.
        place: place of a refused row among the versions of its file; None likewise.
        discarded: who discarded it, and why.
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
    """Selected rows: of a table, of days, of a class of error, of an arrival; all by default."""

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
