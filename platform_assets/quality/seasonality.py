"""The rhythm of a table: which of its days have volumes that can be compared, as its read windows tell.

A trailing window fills up during its first days, and a month to date starts anew with each month. Compared by weekday,
both look like faults of correct data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from platform_assets.contracts import AllHistory, AsOf, Catalogue, MonthToDate, Offsets, Span
from platform_assets.planning.windows import Calendar
from platform_assets.records.history import DayMark

Season = Literal["weekday", "day of month"]


@dataclass(frozen=True)
class Rhythm:
    """Days of one table that can be compared, and which of them are alike.

    Args:
        full: the days whose windows, and those of everything they read, lie within the calendar.
        season: days are alike that share their weekday or their day of the month.
        closed: days on which no rows are expected.
        overlapping: days next to each other are made of the same rows, so that several odd ones are one oddity.
    """

    full: Calendar
    season: Season = "weekday"
    closed: frozenset[date] = frozenset()
    overlapping: bool = False

    def unfit(self, day: date) -> str | None:
        """Why a day cannot be compared with others, or None."""
        if day in self.closed:
            return "the day is closed"
        return None if day in self.full else "the days it reads reach beyond the calendar"

    def part(self, day: date) -> int:
        """Days with the same number are alike."""
        return day.weekday() if self.season == "weekday" else day.day

    def name(self, day: date) -> str:
        """The days that are like this one, in words."""
        return f"{day:%A}s" if self.season == "weekday" else f"months on day {day.day}"


def quiet_days(catalogue: Catalogue, table: str, loaded: Mapping[date, DayMark], calendar: Calendar) -> set[date]:
    """Return the loaded days of a table that have no rows, as was to be expected: there is nothing to look at."""
    closed = rhythm_of(catalogue, table, calendar).closed
    return {day for day in closed if day in loaded and not loaded[day].rows}


def rhythm_of(catalogue: Catalogue, table: str, calendar: Calendar) -> Rhythm:
    """The rhythm that follows from the read windows of a table and of all tables above it.

    Raises:
        UnknownTableError: no domain declares the table.
    """
    contract = catalogue[table]
    first, last = calendar.first, calendar.last
    season: Season = "weekday"
    overlapping = False
    closed = frozenset(day for day in calendar.days() if not contract.expects(day))
    closed_above: list[frozenset[date]] = []
    for read in contract.inputs:
        # Reference data has no part in how many rows a day has.
        if isinstance(read.window, AsOf):
            continue
        theirs = rhythm_of(catalogue, read.table, calendar)
        closed_above.append(theirs.closed if read.window == Span(0, 0) else frozenset())
        overlapping = overlapping or theirs.overlapping or read.window != Span(0, 0)
        # All of history never starts anew.
        if isinstance(read.window, AllHistory):
            continue
        start, end = theirs.full.first, theirs.full.last
        season = theirs.season if season == "weekday" else season
        match read.window:
            case Span(before, after):
                start, end = start + timedelta(days=before), end - timedelta(days=after)
            case Offsets(each, unit):
                length = timedelta(days=1 if unit == "days" else 366)
                start, end = start + max(0, -min(each)) * length, end - max(0, *each) * length
            case MonthToDate():
                season = "day of month"
                start = start if start.day == 1 else (start.replace(day=1) + timedelta(days=32)).replace(day=1)
        first, last = max(first, start), min(last, end)
    # A table that only joins the same day of its inputs has no rows either where none of them expects any.
    closed = closed.union(frozenset.intersection(*closed_above)) if closed_above else closed
    return Rhythm(Calendar(first, last), season, closed, overlapping)
