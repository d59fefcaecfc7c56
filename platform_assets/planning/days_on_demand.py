"""What is known of a table's days, fetched where somebody asks: of a long history mostly few days matter.

A mapping like any other, and what is said of it does not depend on what was fetched. Who goes through all of it fetches
all of it; the functions below ask for less, of it and of a plain mapping alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from typing import TypeVar, cast

from platform_assets.planning.windows import Calendar

T = TypeVar("T")
V = TypeVar("V")


class DaysOnDemand(Mapping[date, T]):
    """The loaded days of a table, oldest first, of which most are known to be there without a look.

    Args:
        calendar: the days that exist; others are fetched with its first or last quarter.
        open_days: those of which nothing is known beforehand. Every other day of the calendar is loaded.
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
        """Return the same days with something else known of each."""
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
    """Return what is known of the newest days, at most so many."""
    if isinstance(days, DaysOnDemand):
        found = cast("DaysOnDemand[T]", days)
        return [found[day] for day, _ in zip(reversed(found), range(most), strict=False)]
    return [days[day] for day in sorted(days)[-most:]]


def first_and_last(days: Collection[date]) -> tuple[date, date]:
    """Return the first and the last of some days; the last before the first where there are none."""
    if isinstance(days, DaysOnDemand):
        return next(iter(days), date.max), next(reversed(days), date.min)
    return min(days, default=date.max), max(days, default=date.min)


def not_known_beforehand(days: Mapping[date, T]) -> Mapping[date, T]:
    """Return the days of which nothing is known beforehand; of a plain mapping, all of them."""
    if isinstance(days, DaysOnDemand):
        found = cast("DaysOnDemand[T]", days)
        return {day: found[day] for day in sorted(found.open_days) if day in found}
    return days
