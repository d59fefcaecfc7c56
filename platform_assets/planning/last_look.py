"""Result of the last look at all days, so that the next looks only at changes since, however long the history.

A look records which days were not up to date at one release; all others were. Their present state follows from later
publications, holds and new days of the calendar: only these days, and those that read them through a window, are looked
at again. Losing a look costs only time. A look made under other contracts or by other code is ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import BaseModel, ConfigDict

from platform_assets.contracts import Catalogue
from platform_assets.planning.day_states import TableStates
from platform_assets.planning.windows import (
    Calendar,
    day_range,
    not_known_beforehand,
    not_there,
    union_reached,
    window_text,
)
from platform_assets.records.code_version import Version

_FORM = 2
"""Raised when states of days follow from something else than before, so that older looks count no more."""
_MANY = 1_000
"""Most days that are fetched one by one instead of all days."""


class Look(BaseModel):
    """Result of a look at one release.

    Args:
        today: the date in UTC.
        open_days: days that were not up to date, not loaded, held, or outside the calendar, by table.
        contents: content of tables that are read as of a day, as `content_of` has it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    last: date
    today: date
    open_days: Mapping[str, frozenset[date]] = {}
    contents: Mapping[str, str] = {}


@dataclass(frozen=True)
class Since:
    """A look, and what happened since.

    Args:
        mark: mark of the look, if it is stored.
    """

    look: Look
    published: Mapping[str, Collection[date]]
    calendar: Calendar
    mark: str = ""

    def open_days(self, table: str) -> frozenset[date]:
        """Return the days of a table to look at; every other day of the calendar was up to date."""
        return frozenset({*self.look.open_days.get(table, ()), *self.published.get(table, ()), *self.new_days})

    def is_of_most_days(self, tables: Collection[str]) -> bool:
        """Return whether so many days of some tables must be looked at that fetching all of them is faster."""
        asked = sum(len(self.open_days(table)) for table in tables)
        return asked > _MANY and asked * 4 > len(self.calendar.days()) * len(tables)

    @property
    def new_days(self) -> tuple[date, ...]:
        """Return days that the calendar did not have."""
        return tuple(day_range(date.fromordinal(self.look.last.toordinal() + 1), self.calendar.last))


def look_for(
    catalogue: Catalogue, versions: Mapping[str, Version], configurations: Mapping[str, str], first: date
) -> str:
    """Hash what a look depends on: contracts, code and the calendar's first day."""
    parts = [str(_FORM), str(first)]
    for contract in catalogue:
        name, closed = contract.name, ",".join(map(str, sorted(contract.closed_days)))
        reads = ",".join(f"{read.table} {window_text(read.window)}" for read in contract.inputs)
        delivery = f"{contract.delivers}|{contract.delivered_after_days}|{contract.event_time}|{closed}"
        parts.append(f"{name}|{reads}|{versions.get(name, Version())}|{configurations[name]}|{delivery}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def to_look_at(catalogue: Catalogue, tables: TableStates, since: Since) -> dict[str, frozenset[date]]:
    """Return the days of tables with a transform that may not be up to date, by table."""
    held = {table: {hold.day for hold in holds} for table, holds in tables.holds.items()}
    new = since.new_days
    changed: dict[str, set[date]] = {}
    look: dict[str, frozenset[date]] = {}
    for contract in catalogue:
        name = contract.name
        # A day that is there or not, good or not, and of what content: what a day that reads it goes by.
        changed[name] = {*since.published.get(name, ()), *new, *held.get(name, ())}
        if not contract.inputs:
            continue  # what reads a raw day that was not loaded was not up to date
        days = {*since.open_days(name), *held.get(name, ())}
        for read in contract.inputs:
            for span in union_reached(read.window, changed.get(read.table, ()), tables.calendar):
                days.update(day_range(*span))
        look[name] = frozenset(tables.calendar.days() if name in tables.changing else days)
    return {name: frozenset(day for day in days if day in tables.calendar) for name, days in look.items()}


def open_days(
    catalogue: Catalogue, tables: TableStates, not_up_to_date: Mapping[str, Collection[date]]
) -> dict[str, frozenset[date]]:
    """Return the days that the next look must look at again in any case, by table."""
    found: dict[str, frozenset[date]] = {}
    for contract in catalogue:
        name, marks = contract.name, tables.marks.get(contract.name, {})
        mine = not_up_to_date.get(name, ()) if contract.inputs else not_there(marks, tables.calendar)
        held = (hold.day for hold in tables.holds.get(name, ()))
        found[name] = frozenset({*mine, *held, *outside(marks, tables.calendar)})
    return found


def outside(marks: Mapping[date, object], calendar: Calendar) -> set[date]:
    """Return days outside the calendar that have content."""
    return {day for day in not_known_beforehand(marks) if day not in calendar}
