"""What recomputing some days will probably take, from what the days of the table took before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from statistics import median

from platform_assets.planning.days_on_demand import newest
from platform_assets.records.history import DayMark

_BRIEF_ROWS, _BRIEF_BYTES = 200_000, 1 << 20
_NEWEST = 100
"""Days that the median is taken of: what tables took years ago says little of today."""


@dataclass(frozen=True)
class Estimate:
    """Of what is written, and of the time it takes.

    Args:
        bytes: written.
        seconds: wall time.
    """

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.rows + other.rows, self.bytes + other.bytes, self.seconds + other.seconds)


def written(days: Collection[date], known: Mapping[date, DayMark]) -> Estimate | None:
    """Return how much some days will probably have, without how long it takes; None where the table has no day."""
    recent = newest(known, _NEWEST)
    if not days or not recent:
        return None
    usual = DayMark(
        recent[0].day,
        rows=round(median(mark.rows for mark in recent)),
        bytes=round(median(mark.bytes for mark in recent)),
    )
    sizes = [known.get(day, usual) for day in days]
    return Estimate(rows=sum(mark.rows for mark in sizes), bytes=sum(mark.bytes for mark in sizes))


def estimate(days: Collection[date], known: Mapping[date, DayMark]) -> Estimate | None:
    """Return a day that is there will be about as large again, any other like the median day of the newest hundred.

    Seconds are those of a median day for each, and once what the smallest publication among them took beyond that: a
    job costs something before its first day.

    Returns:
        None where none of these days was timed, so that nothing can be said.
    """
    size = written(days, known)
    timed = [mark for mark in newest(known, _NEWEST) if mark.seconds > 0]
    if size is None or not timed:
        return None
    per_day = median(mark.seconds for mark in timed)
    return replace(size, seconds=len(days) * per_day + _before_the_first_day(timed, per_day))


def total(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """All together; None as soon as one of them is not known."""
    summed = Estimate()
    for part in estimates:
        if part is None:
            return None
        summed += part
    return summed


def is_brief(written: Estimate | None, taken_bytes: int) -> bool:
    """Return whether work ends before a JVM has compiled well what it executes: few rows to write, little to take in.

    Args:
        written: by all steps that are planned; None if a table was never computed, so that nothing is known of it.
        taken_bytes: of files whose days join the plan.
    """
    return written is not None and written.rows <= _BRIEF_ROWS and taken_bytes <= _BRIEF_BYTES


def _before_the_first_day(timed: Iterable[DayMark], per_day: float) -> float:
    by_release: defaultdict[int, list[float]] = defaultdict(list)
    for mark in timed:
        by_release[mark.release].append(mark.seconds)
    smallest = min(by_release.values(), key=len)
    return max(sum(smallest) - len(smallest) * per_day, 0.0)
