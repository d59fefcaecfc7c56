"""How many rows a day usually has: an interval taken from the days that are like it.

Its middle is the median of those days, its width `Z` times their median absolute deviation, scaled by 1.4826 to the
standard deviation of a normal distribution: the modified z-score of Iglewicz and Hoaglin (How to Detect and Handle
Outliers, ASQC 1993), also known as Hampel's identifier. Bad days in the history hardly move either, as long as they
are few. All of it on the logarithm of the rows, where half and double are equally far away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, exp, expm1, floor, log1p
from statistics import median

from platform_assets.quality.seasonality import Rhythm

Z = 4.0
NORMAL = 1.4826
ALIKE, LEAST_ALIKE = 26, 5
"""Most and fewest days that are alike to compare with: half a year of weekdays, and little more than a month."""
ANY, LEAST_ANY = 28, 14
"""Most and fewest days whatever their weekday, while too few are alike."""
LEAST_SPREAD = 0.02
"""Even a constant series may vary by `Z` times this share of its rows, and by one row more."""
LEAST_NOISE = 0.5
"""... and one that ever varied by `Z` times this share of the standard deviation of a count (Poisson's): where two to
four rows are seen, five are nothing odd."""


@dataclass(frozen=True)
class Interval:
    """Numbers of rows that are usual.

    Args:
        low: fewest.
        high: most, included.
        middle: the median.
        days: how many days it was taken from.
        of: which days, in words.
    """

    low: int
    high: int
    middle: int
    days: int
    of: str

    def side(self, rows: int) -> int:
        """-1 for too few rows, 1 for too many, 0 for a usual number."""
        return (rows > self.high) - (rows < self.low)

    def distance(self, rows: int) -> float:
        """How far from the median, on the logarithm of the rows: half and double are equally far."""
        return abs(log1p(rows) - log1p(self.middle))

    def is_much_farther(self, rows: int, than: int) -> bool:
        """Whether a number of rows is farther from the median than another by more than what is usual at all."""
        return self.distance(rows) - self.distance(than) > self.distance(self.high)

    def __str__(self) -> str:
        return f"{self.low:,} to {self.high:,} rows are usual (median {self.middle:,} of {self.days} {self.of})"


@dataclass(frozen=True)
class Undecided:
    """Nothing can be said of a day, and why: neither good nor bad.

    Args:
        why: for a person.
        lacks_history: whether too few days can be compared with; a day that is closed or usually empty lacks none.
    """

    why: str
    lacks_history: bool = False

    def side(self, rows: int) -> int:
        """Any number of rows may be usual."""
        return 0

    def __str__(self) -> str:
        return f"not judged: {self.why}"


class History:
    """Rows per day to compare with.

    Args:
        rows: by day; days that cannot be compared are left out here.
        rhythm: which days are alike.
    """

    def __init__(self, rows: Mapping[date, int], rhythm: Rhythm) -> None:
        self._rows = {day: rows[day] for day in sorted(rows) if rhythm.unfit(day) is None}
        self._rhythm = rhythm
        self._days = list(self._rows)
        self._alike: dict[int, list[date]] = defaultdict(list)
        for day in self._days:
            self._alike[rhythm.part(day)].append(day)

    def usual(self, day: date) -> Interval | Undecided:
        """What is usual for a day, by the days nearest to it before and after, never by itself."""
        if unfit := self._rhythm.unfit(day):
            return Undecided(unfit, lacks_history=day not in self._rhythm.closed)
        name = self._rhythm.name(day)
        alike = self._nearest(self._alike.get(self._rhythm.part(day), []), day, ALIKE)
        if _mostly_empty(alike):
            return Undecided(f"{name} usually have no rows", lacks_history=len(alike) < LEAST_ALIKE)
        if len(alike) >= LEAST_ALIKE:
            return _interval(alike, name)
        if self._rhythm.season != "weekday":
            return Undecided(f"{len(alike)} of {LEAST_ALIKE} {name} of history", lacks_history=True)
        others = self._nearest(self._days, day, ANY)
        if len(others) < LEAST_ANY:
            return Undecided(f"{len(others)} of {LEAST_ANY} days of history", lacks_history=True)
        return Undecided("days usually have no rows") if _mostly_empty(others) else _interval(others, "days")

    def side(self, day: date) -> int:
        """On which side of its own interval a day of the history lies; 0 for a day that is not part of it."""
        return self.usual(day).side(self._rows[day]) if day in self._rows else 0

    def _nearest(self, days: Sequence[date], day: date, most: int) -> list[int]:
        at = bisect_left(days, day)
        around = [other for other in days[max(0, at - most) : at + most + 1] if other != day]
        return [self._rows[other] for other in sorted(around, key=lambda other: abs((other - day).days))[:most]]


def _mostly_empty(sample: Sequence[int]) -> bool:
    return bool(sample) and 2 * sample.count(0) >= len(sample)


def _interval(sample: Sequence[int], of: str) -> Interval:
    logs = [log1p(rows) for rows in sample]
    middle = median(logs)
    seen = NORMAL * median(abs(value - middle) for value in logs)
    noise = LEAST_NOISE * exp(-middle / 2) if len(set(sample)) > 1 else 0.0
    spread = max(seen, LEAST_SPREAD, noise)
    low, high = ceil(expm1(middle - Z * spread)) - 1, floor(expm1(middle + Z * spread)) + 1
    # Where a count may vary that far down, a day without any is odd all the same, unless there were such days.
    least = int(noise > LEAST_SPREAD and 0 not in sample)
    return Interval(max(low, least), high, round(expm1(middle)), len(sample), of)
