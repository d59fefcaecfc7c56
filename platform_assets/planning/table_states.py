"""What is known of tables at one moment, from which the states of their days follow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import cast

from platform_assets.contracts import Input, Span
from platform_assets.planning.configuration import Need
from platform_assets.planning.days_on_demand import DaysOnDemand, not_there
from platform_assets.planning.fingerprints import Digests, Views
from platform_assets.planning.windows import Calendar, ranges_read
from platform_assets.records.code_version import Version
from platform_assets.records.history import DayMark, Hold, Marks, hold_of_each_day


@dataclass(frozen=True)
class TableStates:
    """What is known of tables at one moment, from which the states of their days follow.

    Args:
        marks: every loaded day, by table.
        holds: of every table, oldest first.
        calendar: the days that exist.
        versions: by what each table with a transform is computed today; without it, nothing is stale through that.
        views: of every table that is read as of a day.
        changing: tables that have other columns, or days of another key, than their contract says today, and what each
            needs to follow it.
        contents: of every table that is read as of a day, what its days hold, as one hash.
        stopped: tables of which nothing is published, with the open circuit that stops them, their own or an input's.
    """

    marks: Marks
    holds: Mapping[str, Sequence[Hold]]
    calendar: Calendar
    versions: Mapping[str, Version] = field(default_factory=dict)
    views: Views = field(default_factory=dict)
    changing: Mapping[str, Need] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, Hold] = field(default_factory=dict)

    @cached_property
    def digests(self) -> Digests:
        """Content of every loaded day, by table."""
        return {table: _digests(marks) for table, marks in self.marks.items()}

    @cached_property
    def held(self) -> Mapping[str, Mapping[date, Hold]]:
        """Of every held day the hold that says what readers have, by table."""
        return {
            table: {day: hold for (_, day), hold in hold_of_each_day(holds).items()}
            for table, holds in self.holds.items()
        }


def missing_days(table: str, tables: TableStates, and_these: Collection[date] = ()) -> list[date]:
    """The days of a table that are not there, oldest first, some more taken as if they were."""
    return [day for day in not_there(tables.marks.get(table, {}), tables.calendar) if day not in and_these]


def _digests(marks: Mapping[date, DayMark]) -> Mapping[date, str]:
    if isinstance(marks, DaysOnDemand):
        return cast("DaysOnDemand[DayMark]", marks).mapped(lambda mark: mark.digest)
    return {day: mark.digest for day, mark in marks.items()}


def missing_input(
    inputs: Iterable[Input], day: date, missing: Mapping[str, Sequence[date]], calendar: Calendar
) -> tuple[str, date] | None:
    """The first input day that a day reads and that is not there.

    Args:
        inputs: of the day's table.
        missing: days of every input that are not there, oldest first.
        calendar: the days that exist.
    """
    for read in inputs:
        for start, end in ranges_read(read.window, day, calendar):
            at = bisect_left(missing[read.table], start)
            if at < len(missing[read.table]) and (needed := missing[read.table][at]) <= end:
                return read.table, needed
    return None


def held_input(
    inputs: Iterable[Input], day: date, tables: TableStates, made: Mapping[str, Collection[date]] = MappingProxyType({})
) -> Hold | None:
    """What holds the first input day of the same date that is not good, though it has content.

    Args:
        inputs: of the day's table.
        tables: what is known of the inputs.
        made: days of inputs that are computed before.
    """
    for read in inputs:
        hold = tables.held.get(read.table, {}).get(day)
        is_not_good = hold is not None and not hold.is_of_good_content and day in tables.marks.get(read.table, {})
        if read.window == Span(0, 0) and is_not_good and day not in made.get(read.table, ()):
            return hold
    return None
