"""Days: which exist, which a day reads through a window, which a changed day reaches, and their content.

Both directions of a window come from the same declaration, so a filter never reads a day that invalidation missed. The
content of days is a mapping that may be fetched on demand: mostly few days of a long history matter. Results do not
depend on what was fetched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import TypeVar, cast

from platform_assets.contracts import AllHistory, AsOf, Contract, MonthToDate, Offsets, Span, Window

SOURCE_DAY, VALID = "source_date", ("_valid_from", "_valid_to")
"""Columns of rows read through a window, and of a history: a row's own day; when it begins and ceases to hold."""
EVERY_ROW, WINDOW_DAYS = "_rows", "_window"
"""What follows an input's name in SQL: its rows once each, and which days are read for which."""

Ranges = tuple[tuple[date, date], ...]
"""Ranges of days that do not touch, oldest first: first and last day of each."""

_SHOWN = 3
"""Ranges that a line names."""


@dataclass(frozen=True)
class Calendar:
    """The days that exist: from `first` to `last`, both included.

    `last` before `first` is a calendar without days.
    """

    first: date
    last: date

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def clip(self, start: date, end: date) -> Ranges:
        """Return the part of a range in the calendar, as one range; none if there is none."""
        start, end = max(start, self.first), min(end, self.last)
        return ((start, end),) if start <= end else ()

    def days(self) -> tuple[date, ...]:
        """Return every day, oldest first."""
        return _days(self.first, self.last)


@lru_cache(maxsize=16)
def _days(first: date, last: date) -> tuple[date, ...]:
    return tuple(day_range(first, last))


def day_range(start: date, end: date) -> Iterable[date]:
    """Return every day from `start` to `end`, both included."""
    return (start + timedelta(days=n) for n in range((end - start).days + 1))


def ranges_read(window: Window, day: date, calendar: Calendar) -> Ranges:
    """Return the days of the input that `day` reads, within the calendar, as ranges."""
    match window:
        case AsOf() | AllHistory():
            return calendar.clip(calendar.first, day)
        case Offsets():
            return ranges([chosen for chosen in _chosen(window, day) if chosen in calendar])
        case _:
            before, after = days_around(window, day)
            return calendar.clip(day - timedelta(days=before), day + timedelta(days=after))


def in_any(spans: Iterable[tuple[date, date]], day: date) -> bool:
    """Return whether a day is in one of some ranges."""
    return any(first <= day <= last for first, last in spans)


def days_in(days: Sequence[date], spans: Iterable[tuple[date, date]]) -> list[date]:
    """Return the days that are in some ranges; both are in order, oldest first."""
    return [day for first, last in spans for day in days[bisect_left(days, first) : bisect_right(days, last)]]


def days_read(window: Window, day: date, calendar: Calendar) -> Iterable[date]:
    """Return every day of the input that `day` reads, oldest first."""
    return (read for first, last in ranges_read(window, day, calendar) for read in day_range(first, last))


def _chosen(window: Offsets, day: date, sign: int = 1) -> list[date]:
    """Return the days that a day reads, also outside the calendar; with -1 as the sign, the days that read it."""
    if window.unit == "days":
        return [day + timedelta(days=sign * n) for n in window.each]
    years = [day.year + sign * n for n in window.each]
    return [day.replace(year=year) for year in years if (day.month, day.day) != (2, 29) or isleap(year)]


def days_before_calendar(window: Window, day: date, calendar: Calendar) -> int:
    """Count the days of a window before the calendar: they do not exist, and the day is computed without them.

    Refusing such days would leave a trailing window without its first ones for ever.
    """
    if isinstance(window, AsOf | AllHistory):
        return 0
    if isinstance(window, Offsets):
        return sum(chosen < calendar.first for chosen in _chosen(window, day))
    before, _ = days_around(window, day)
    return max((calendar.first - (day - timedelta(days=before))).days, 0)


def days_around(window: Span | MonthToDate, day: date) -> tuple[int, int]:
    """Return how many days before and after a day it reads."""
    return (window.before, window.after) if isinstance(window, Span) else (day.day - 1, 0)


def window_text(window: Window) -> str:
    """Return a window as contracts spell it; also part of a day's recorded configuration."""
    match window:
        case Span(0, 0):
            return "same_day"
        case Span(before, after):
            return f"span({before}, {after})"
        case Offsets(each, unit):
            return f"{'offsets' if unit == 'days' else 'same_date'}({', '.join(map(str, each))})"
        case MonthToDate():
            return "month_to_date"
        case AsOf():
            return "as_of"
        case AllHistory():
            return "all_history"


def ranges_reached(window: Window, changed: date, calendar: Calendar) -> Ranges:
    """Return the days whose window contains the `changed` day of the input, as ranges: the inverse of `ranges_read`."""
    match window:
        case Span(before, after):
            return calendar.clip(changed - timedelta(days=after), changed + timedelta(days=before))
        case Offsets():
            return ranges([day for day in _chosen(window, changed, -1) if day in calendar])
        case MonthToDate():
            next_month = (changed.replace(day=1) + timedelta(days=32)).replace(day=1)
            return calendar.clip(changed, next_month - timedelta(days=1))
        case AsOf() | AllHistory():
            return calendar.clip(changed, calendar.last)


def ranges(days: Collection[date]) -> Ranges:
    """Return the days as contiguous ranges, first and last day of each, oldest first."""
    spans: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if spans and day - spans[-1][1] == timedelta(days=1):
            spans[-1] = (spans[-1][0], day)
        else:
            spans.append((day, day))
    return tuple(spans)


def as_named(days: Collection[date]) -> list[str]:
    """Return days as ranges in the syntax of `--days`."""
    return [between(first, last) for first, last in ranges(days)]


def between(first: date, last: date) -> str:
    """Return a range of days in its usual spelling; one day is that day."""
    return str(first) if first == last else f"{first}..{last}"


def which(days: Collection[date]) -> str:
    """Return days as ranges, the first few of them."""
    spans = as_named(days)
    more = f" and {len(spans) - _SHOWN:,} more" if len(spans) > _SHOWN else ""
    return ", ".join(spans[:_SHOWN]) + more


def days_later(day: date, days: int) -> date:
    """Return the day so many days later; the last possible one before the year 10000."""
    return date.fromordinal(min(day.toordinal() + days, date.max.toordinal()))


def within_reach(days: Collection[date], within_days: int) -> set[date]:
    """Return the existing days at most `within_days` away from some days, those included."""
    reached: set[date] = set()
    beyond = date.min.toordinal()
    for day in sorted(days):  # so that days near each other reach no day twice
        first = max(day.toordinal() - within_days, beyond)
        beyond = max(min(day.toordinal() + within_days, date.max.toordinal()) + 1, beyond)
        reached.update(map(date.fromordinal, range(first, beyond)))
    return reached


def union_read(window: Window, days: Collection[date], calendar: Calendar) -> Ranges:
    """Return the contiguous ranges of input days that any of `days` reads, oldest first."""
    return _merged({span for day in days for span in ranges_read(window, day, calendar)})


def union_reached(window: Window, changed: Collection[date], calendar: Calendar) -> Ranges:
    """Return the contiguous ranges of days whose window holds any of the changed days of the input, oldest first."""
    return _merged({span for day in changed for span in ranges_reached(window, day, calendar)})


def _merged(spans: Collection[tuple[date, date]]) -> Ranges:
    """Return overlapping or adjacent ranges merged."""
    merged: list[tuple[date, date]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + timedelta(days=1):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


FilesRead = Mapping[str, Mapping[date, int]]
"""How many files of each day were read, by input table."""


@dataclass(frozen=True)
class Read:
    """The part of an input that was read.

    Args:
        days: days whose files were read; a loaded day without rows has none.
    """

    days: int = 0
    files: int = 0

    def __add__(self, other: Read) -> Read:
        return Read(self.days + other.days, self.files + other.files)


def first_outside(
    contract: Contract, days: Collection[date], calendar: Calendar, read: FilesRead
) -> tuple[str, date] | None:
    """Return the input and day that was read outside the windows of these days; None if all is as declared."""
    for declared in contract.inputs:
        spans = union_read(declared.window, days, calendar)
        for day in sorted(read.get(declared.table, ())):
            if not in_any(spans, day):
                return declared.table, day
    return None


def read_in_all(read: FilesRead) -> dict[str, Read]:
    """Return what some days together needed of each input."""
    return {table: Read(len(files), sum(files.values())) for table, files in read.items()}


def read_for_day(contract: Contract, day: date, calendar: Calendar, read: FilesRead) -> Read:
    """Return the part of what was read that one of the days needed, over all inputs."""
    total = Read()
    for declared in contract.inputs:
        files = read.get(declared.table, {})
        mine = days_in(sorted(files), ranges_read(declared.window, day, calendar))
        total += Read(len(mine), sum(files[at] for at in mine))
    return total


T = TypeVar("T")
V = TypeVar("V")


class DaysOnDemand(Mapping[date, T]):
    """The loaded days of a table, oldest first. Most are known without a query.

    Args:
        calendar: the days that exist; others are fetched with its first or last quarter.
        open_days: days that may not be loaded. Every other day of the calendar is loaded.
        fetch: the loaded days from one to another, oldest first.
    """

    def __init__(
        self, calendar: Calendar, open_days: Collection[date], fetch: Callable[[date, date], Mapping[date, T]]
    ) -> None:
        self.calendar, self.open_days, self._fetch = calendar, frozenset(open_days), fetch
        self._quarters: dict[int, Mapping[date, T]] = {}

    def __getitem__(self, day: date) -> T:
        return self._near(day)[day]

    def __contains__(self, day: object) -> bool:
        if not isinstance(day, date):
            return False
        return (day in self.calendar and day not in self.open_days) or day in self._near(day)

    def __iter__(self) -> Iterator[date]:
        for quarter in range(_quarter(self.calendar.first), _quarter(self.calendar.last) + 1):
            yield from self._of(quarter)

    def __reversed__(self) -> Iterator[date]:
        for quarter in range(_quarter(self.calendar.last), _quarter(self.calendar.first) - 1, -1):
            yield from reversed(list(self._of(quarter)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def mapped(self, what: Callable[[T], V]) -> DaysOnDemand[V]:
        """Return the same days with other content, mapped from each."""
        return DaysOnDemand(
            self.calendar,
            self.open_days,
            lambda first, _: {day: what(of_day) for day, of_day in self._near(first).items()},
        )

    def _near(self, day: date) -> Mapping[date, T]:
        return self._of(_quarter(min(max(day, self.calendar.first), self.calendar.last)))

    def _of(self, quarter: int) -> Mapping[date, T]:
        if quarter not in self._quarters:
            first = date.min if quarter == _quarter(self.calendar.first) else _first_day(quarter)
            is_last = quarter == _quarter(self.calendar.last)
            last = date.max if is_last else date.fromordinal(_first_day(quarter + 1).toordinal() - 1)
            self._quarters[quarter] = self._fetch(first, last)
        return self._quarters[quarter]


def _quarter(day: date) -> int:
    return day.year * 4 + (day.month - 1) // 3


def _first_day(quarter: int) -> date:
    return date(quarter // 4, quarter % 4 * 3 + 1, 1)


def days_in_question(days: Collection[date], calendar: Calendar) -> tuple[date, ...]:
    """Return the days of the calendar that may not be among some days, oldest first."""
    if isinstance(days, DaysOnDemand):
        return tuple(sorted(day for day in days.open_days if day in calendar))
    return calendar.days()


def not_there(days: Collection[date], calendar: Calendar) -> list[date]:
    """Return the days of the calendar that are not among some days, oldest first."""
    return [day for day in days_in_question(days, calendar) if day not in days]


def newest(days: Mapping[date, T], most: int) -> list[T]:
    """Return the content of the newest days, at most so many."""
    if isinstance(days, DaysOnDemand):
        found = cast("DaysOnDemand[T]", days)
        return [found[day] for day, _ in zip(reversed(found), range(most), strict=False)]
    return [days[day] for day in sorted(days)[-most:]]


def first_and_last(days: Collection[date]) -> tuple[date, date]:
    """Return the first and the last of some days; the last before the first if there are none."""
    if isinstance(days, DaysOnDemand):
        return next(iter(days), date.max), next(reversed(days), date.min)
    return min(days, default=date.max), max(days, default=date.min)


def not_known_beforehand(days: Mapping[date, T]) -> Mapping[date, T]:
    """Return the days that need a query; for a plain mapping, all of them."""
    if isinstance(days, DaysOnDemand):
        found = cast("DaysOnDemand[T]", days)
        return {day: found[day] for day in sorted(found.open_days) if day in found}
    return days
