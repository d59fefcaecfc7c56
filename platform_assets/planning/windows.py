"""What a read window means: which days a day reads, and which days a changed day reaches.

Both directions come from the same declaration, so a filter can never see a day that invalidation forgot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from platform_assets.contracts import AllHistory, AsOf, MonthToDate, Span, Window

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

    def clip(self, start: date, end: date) -> tuple[date, date]:
        """The part of a range that lies in the calendar; its end is before its start if none does."""
        return max(start, self.first), min(end, self.last)

    def days(self) -> tuple[date, ...]:
        """Every day, oldest first."""
        return _days(self.first, self.last)


@lru_cache(maxsize=16)
def _days(first: date, last: date) -> tuple[date, ...]:
    return tuple(day_range(first, last))


def day_range(start: date, end: date) -> Iterable[date]:
    """Every day from `start` to `end`, both included."""
    return (start + timedelta(days=n) for n in range((end - start).days + 1))


def days_read(window: Window, day: date, calendar: Calendar) -> tuple[date, date]:
    """First and last day of the input that `day` reads, within the calendar."""
    if isinstance(window, AsOf | AllHistory):
        return calendar.clip(calendar.first, day)
    before, after = days_around(window, day)
    return calendar.clip(day - timedelta(days=before), day + timedelta(days=after))


def days_before_calendar(window: Window, day: date, calendar: Calendar) -> int:
    """How many days of a day's window lie before the calendar: they do not exist, and the day is made without them.

    Refusing such days would leave a trailing window without its first ones for ever.
    """
    if isinstance(window, AsOf | AllHistory):
        return 0
    before, _ = days_around(window, day)
    return max((calendar.first - (day - timedelta(days=before))).days, 0)


def days_around(window: Span | MonthToDate, day: date) -> tuple[int, int]:
    """How many days before a day, and how many after it, it reads."""
    return (window.before, window.after) if isinstance(window, Span) else (day.day - 1, 0)


def window_text(window: Window) -> str:
    """A window as contracts spell it; also part of what says under which contract a day was computed."""
    match window:
        case Span(0, 0):
            return "same_day"
        case Span(before, after):
            return f"span({before}, {after})"
        case MonthToDate():
            return "month_to_date"
        case AsOf():
            return "as_of"
        case AllHistory():
            return "all_history"


def days_reached(window: Window, changed: date, calendar: Calendar) -> tuple[date, date]:
    """First and last day whose window holds the `changed` day of the input: the inverse of `days_read`."""
    match window:
        case Span(before, after):
            return calendar.clip(changed - timedelta(days=after), changed + timedelta(days=before))
        case MonthToDate():
            next_month = (changed.replace(day=1) + timedelta(days=32)).replace(day=1)
            return calendar.clip(changed, next_month - timedelta(days=1))
        case AsOf() | AllHistory():
            return calendar.clip(changed, calendar.last)


def ranges(days: Collection[date]) -> tuple[tuple[date, date], ...]:
    """The days as contiguous ranges, first and last day of each, oldest first."""
    spans: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if spans and day - spans[-1][1] == timedelta(days=1):
            spans[-1] = (spans[-1][0], day)
        else:
            spans.append((day, day))
    return tuple(spans)


def as_named(days: Collection[date]) -> list[str]:
    """Days as ranges, each as `--days` takes it."""
    return [between(first, last) for first, last in ranges(days)]


def between(first: date, last: date) -> str:
    """A range of days as it is written everywhere; one day is that day."""
    return str(first) if first == last else f"{first}..{last}"


def which(days: Collection[date]) -> str:
    """Days as ranges, the first few of them."""
    spans = as_named(days)
    more = f" and {len(spans) - _SHOWN:,} more" if len(spans) > _SHOWN else ""
    return ", ".join(spans[:_SHOWN]) + more


def days_later(day: date, days: int) -> date:
    """The day so many days later; the last that there is, where that would be one of the year 10000."""
    return date.fromordinal(min(day.toordinal() + days, date.max.toordinal()))


def within_reach(days: Collection[date], within_days: int) -> set[date]:
    """The days at most `within_days` away from one of some days, those included, as far as there are any."""
    reached: set[date] = set()
    beyond = date.min.toordinal()
    for day in sorted(days):  # so that days near each other reach no day twice
        first = max(day.toordinal() - within_days, beyond)
        beyond = max(min(day.toordinal() + within_days, date.max.toordinal()) + 1, beyond)
        reached.update(map(date.fromordinal, range(first, beyond)))
    return reached


def union_read(window: Window, days: Collection[date], calendar: Calendar) -> tuple[tuple[date, date], ...]:
    """The contiguous ranges of input days that any of `days` reads, oldest first."""
    return _merged({days_read(window, day, calendar) for day in days})


def union_reached(window: Window, changed: Collection[date], calendar: Calendar) -> tuple[tuple[date, date], ...]:
    """The contiguous ranges of days whose window holds any of the changed days of the input, oldest first."""
    return _merged({days_reached(window, day, calendar) for day in changed})


def _merged(spans: Collection[tuple[date, date]]) -> tuple[tuple[date, date], ...]:
    """The ranges that some ranges make together; one that ends before its start is none."""
    merged: list[tuple[date, date]] = []
    for start, end in sorted(spans):
        if end < start:
            continue
        if merged and start <= merged[-1][1] + timedelta(days=1):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
