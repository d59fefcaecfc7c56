"""The usual number of rows of a day: an interval from similar days.

Its middle is the median of those days, its width `Z` times their median absolute deviation, scaled by 1.4826 to the
standard deviation of a normal distribution: the modified z-score of Iglewicz and Hoaglin (How to Detect and Handle
Outliers, ASQC 1993), also known as Hampel's identifier. Bad days in the history hardly move either, as long as they
are few. All of it on the logarithm of the rows, where half and double are equally far away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from math import ceil, exp, expm1, floor, log1p
from statistics import median
from types import MappingProxyType
from typing import Literal

from platform_assets.contracts import AllHistory, AsOf, Catalogue, Contract, MonthToDate, Offsets, Severity, Span
from platform_assets.planning.windows import Calendar
from platform_assets.quality.findings import FELL_FROM, Finding
from platform_assets.records.history import DayMark, DayRecord
from platform_assets.words import counted

Season = Literal["weekday", "day of month"]


@dataclass(frozen=True)
class Rhythm:
    """Comparable days of one table, and which of them are similar.

    Args:
        full: days whose windows, and those of all their inputs, are within the calendar.
        season: similar days share their weekday or their day of the month.
        closed: days on which no rows are expected.
        overlapping: whether neighbouring days share rows, so that several odd days are one oddity.
    """

    full: Calendar
    season: Season = "weekday"
    closed: frozenset[date] = frozenset()
    overlapping: bool = False

    def unfit(self, day: date) -> str | None:
        """Return why a day cannot be compared with others, or None."""
        if day in self.closed:
            return "the day is closed"
        return None if day in self.full else "the days it reads reach beyond the calendar"

    def part(self, day: date) -> int:
        """Return a number that similar days share."""
        return day.weekday() if self.season == "weekday" else day.day

    def name(self, day: date) -> str:
        """Return the days similar to this one, in words."""
        return f"{day:%A}s" if self.season == "weekday" else f"months on day {day.day}"


def quiet_days(catalogue: Catalogue, table: str, loaded: Mapping[date, DayMark], calendar: Calendar) -> set[date]:
    """Return the loaded days of a table that are empty as expected: they need no check."""
    closed = rhythm_of(catalogue, table, calendar).closed
    return {day for day in closed if day in loaded and not loaded[day].rows}


def rhythm_of(catalogue: Catalogue, table: str, calendar: Calendar) -> Rhythm:
    """Return the rhythm that follows from the read windows of a table and of all upstream tables.

    A trailing window fills up during its first days, and a month to date starts anew with each month. Compared by
    weekday, both look like faults of correct data.
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


Z = 4.0
NORMAL = 1.4826
ALIKE, LEAST_ALIKE = 26, 5
"""Most and fewest days that are alike to compare with: half a year of weekdays, and little more than a month."""
ANY, LEAST_ANY = 28, 14
"""Most and fewest days of any weekday, while too few have the same weekday."""
LEAST_SPREAD = 0.02
"""Even a constant series may vary by `Z` times this share of its rows, and by one row more."""
LEAST_NOISE = 0.5
"""... and one that ever varied by `Z` times this share of the standard deviation of a count (Poisson's): where two to
four rows are seen, five are nothing odd."""


@dataclass(frozen=True)
class Interval:
    """Usual numbers of rows, both ends included."""

    low: int
    high: int
    middle: int
    days: int
    of: str

    def side(self, rows: int) -> int:
        """Return -1 for too few rows, 1 for too many, 0 for a usual number."""
        return (rows > self.high) - (rows < self.low)

    def distance(self, rows: int) -> float:
        """Return the distance from the median, on the logarithm of the rows: half and double are equally far."""
        return abs(log1p(rows) - log1p(self.middle))

    def is_much_farther(self, rows: int, than: int) -> bool:
        """Return whether a number of rows is farther from the median than another by more than the usual distance."""
        return self.distance(rows) - self.distance(than) > self.distance(self.high)

    def __str__(self) -> str:
        return f"{self.low:,} to {self.high:,} rows are usual (median {self.middle:,} of {self.days} {self.of})"


@dataclass(frozen=True)
class Undecided:
    """A day that cannot be judged, and why.

    Args:
        lacks_history: whether too few days are comparable; a closed or usually empty day lacks none.
    """

    why: str
    lacks_history: bool = False

    def side(self, rows: int) -> int:
        """Return 0: any number of rows may be usual."""
        return 0

    def __str__(self) -> str:
        return f"not judged: {self.why}"


class RowHistory:
    """Rows per day for comparison, without incomparable days."""

    def __init__(self, rows: Mapping[date, int], rhythm: Rhythm) -> None:
        self._rows = {day: rows[day] for day in sorted(rows) if rhythm.unfit(day) is None}
        self._rhythm = rhythm
        self._days = list(self._rows)
        self._alike: dict[int, list[date]] = defaultdict(list)
        for day in self._days:
            self._alike[rhythm.part(day)].append(day)

    def usual(self, day: date) -> Interval | Undecided:
        """Return the usual interval for a day, by the nearest days before and after, without itself."""
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
        """Return on which side of its own interval a day of the history is; 0 for a day that is not part of it."""
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


@dataclass(frozen=True)
class Verdict:
    """Verdict about the volume of one day.

    Args:
        lately: unusual days on the same side among the last ones, this one included; 0 for a usual day.
        shown: rows of the day that readers see now, if these would be held today as well.
        farther: rows of the day that readers see now, if these are farther from the usual.
    """

    day: date
    rows: int
    usual: Interval | Undecided
    lately: int = 0
    severity: Severity | None = None
    shown: int | None = None
    farther: int | None = None

    def __str__(self) -> str:
        no_better = "" if self.shown is None else f"; the {self.shown:,} that readers have would be held as well"
        if self.farther is not None:
            no_better = f"; the {self.farther:,} that readers have are farther from that"
        return f"{counted(self.rows, 'row')}; {self.usual}{no_better}"

    @property
    def is_known(self) -> bool:
        """Return whether there was enough history to compare the day."""
        return not isinstance(self.usual, Undecided)

    @property
    def numbers(self) -> dict[str, int | Decimal]:
        """Return its figures by name; without an interval only the rows."""
        if isinstance(self.usual, Undecided):
            return {"rows": self.rows}
        return {
            "rows": self.rows,
            "low": self.usual.low,
            "high": self.usual.high,
            "median": self.usual.middle,
            "compared_days": self.usual.days,
            "outside_lately": self.lately,
        }


def volume_verdicts(
    contract: Contract,
    rhythm: Rhythm,
    staged: Mapping[date, int],
    published: Mapping[date, int],
    refused: Collection[date] = (),
    shown: Mapping[date, int] = MappingProxyType({}),
) -> dict[date, Verdict]:
    """Judge the volume of staged days by the table's other days.

    A day outside its interval blocks if it is empty, if the contract says so of every day, or if enough of the last
    days were outside on the same side. On the same side, because a holiday week has days with too many rows and days
    with too few, while a fault goes on in one direction. Days that share their rows are not counted so: a single odd
    day stays in a month to date until the month ends.

    Args:
        staged: rows of every staged day, 0 for an empty one.
        published: rows of days for comparison. Leave out held days, and days of the same run or backfill, or a fault
            becomes its own measure; staged and refused days are left out here.
        refused: days held by this check; they count as unusual on either side.
        shown: present rows of staged days; days without rows are left out.

    Returns:
        A verdict for every staged day, also where nothing can be said.
    """
    refused = set(refused) - set(staged)
    others = {day: rows for day, rows in published.items() if day not in staged and day not in refused}
    history = RowHistory(others, rhythm)
    usual = {day: history.usual(day) for day in staged}
    sides = {day: interval.side(staged[day]) for day, interval in usual.items()}
    least, of = contract.checks.volume_blocks_after

    def judged(day: date, rows: int) -> Verdict:
        side = usual[day].side(rows)
        if not side:
            return Verdict(day, rows, usual[day])
        before = [day - timedelta(days=n) for n in range(1, of)]
        lately = 1 + sum(other in refused or sides.get(other, history.side(other)) == side for other in before)
        again = lately >= least and not rhythm.overlapping
        blocks = not rows or again or contract.checks.volume == "block"
        return Verdict(day, rows, usual[day], lately, "block" if blocks else "warn")

    def compared(day: date) -> Verdict:
        now = judged(day, staged[day])
        if now.severity != "block" or day not in shown:
            return now
        there = judged(day, shown[day])
        alike = there.severity == "block" and usual[day].side(there.rows) == usual[day].side(now.rows)
        interval = usual[day]
        assert isinstance(interval, Interval)  # or nothing would block
        worse = bool(there.rows and not now.rows) or interval.is_much_farther(now.rows, there.rows)
        if alike and not worse:
            return replace(now, severity="warn", shown=there.rows)
        nearer = interval.distance(now.rows) < interval.distance(there.rows)
        return replace(now, severity="warn", farther=there.rows) if nearer and now.rows else now

    return {day: compared(day) for day in staged}


def volume_finding(contract: Contract, verdict: Verdict) -> Finding | None:
    """Return the finding on a day's volume."""
    usual = verdict.usual
    if isinstance(usual, Undecided) or verdict.severity is None:
        return None
    what = "too many" if usual.side(verdict.rows) > 0 else "too few"
    of = contract.checks.volume_blocks_after[1]
    again = f"; {verdict.lately} of the last {counted(of, 'day')} had {what}" if verdict.lately > 1 else ""
    return Finding(
        check="volume",
        day=verdict.day,
        severity=verdict.severity,
        message=f"{contract.name} on {verdict.day}: {what} rows: {verdict}{again}",
        expected=str(usual),
        actual=counted(verdict.rows, "row"),
        numbers=verdict.numbers,
    )


def rows_before(shown: DayRecord) -> int:
    """Return the former rows of a day: those that readers have, or had before a loss that still has a warning.

    Otherwise the next computation of a halved day would be compared with its half, and end the warning.
    """
    return shown.figures.get(FELL_FROM, shown.rows)


def is_loss(rows: int, before: int) -> bool:
    """Return whether none or fewer than half are left; for few rows, one more or less does not matter."""
    return 2 * (rows + 1) < before or rows == 0 < before


def not_missed(withdrawn: int, came: int) -> int:
    """Count rows that people withdrew from a day's inputs, and that are therefore not missing.

    Return 0 if other rows came at the same time: they probably replace the withdrawn ones, so all should be back.
    """
    return max(withdrawn, 0) if came <= 0 else 0


def loss_finding(
    contract: Contract, day: date, rows: int, before: int, unjudged: Undecided, *, gone: int = 0
) -> Finding | None:
    """Return a warning for a day that lost more than half of its `rows_before`.

    Without it a correction could halve a young table's day, or empty it, without any finding. It only warns: the rest
    may be right. Rows withdrawn from the day's inputs do not count as missing: the person who withdrew them knows, or
    the finding there says so.
    """
    kept = max(before - gone, 0)
    if not is_loss(rows, kept):
        return None
    fell = f"rows fell from {before:,} to {rows:,} with too little history to judge"
    expected = "at least half of the rows that readers had"
    if gone:
        expected = f"at least half of {kept:,} rows; {gone:,} are gone from its inputs"
    return Finding(
        check="volume",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {fell} ({unjudged.why}); expected: {expected}",
        expected=expected,
        actual=fell,
        numbers={"rows": rows, FELL_FROM: before},
    )


def scant_finding(
    contract: Contract, day: date, rows: int, beside: Interval | Undecided, unjudged: Undecided
) -> Finding | None:
    """Return a warning for a day with fewer than half of the usual rows of the days that came `beside` it.

    Days that came together are no measure for each other, or a fault in all of them would be the measure. But half a
    delivery among whole ones is found.
    """
    if isinstance(beside, Undecided) or beside.side(rows) >= 0 or not is_loss(rows, beside.middle):
        return None
    fewer = f"{counted(rows, 'row')}, fewer than half as many as usual for the days that came with it"
    return Finding(
        check="volume",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {fewer}; {beside}; with too little history to judge ({unjudged.why})",
        expected=f"{beside}, of days that came with it",
        actual=counted(rows, "row"),
        numbers={"rows": rows},
    )


def with_rows_before(finding: Finding, rows: int, shown: DayRecord | None) -> Finding:
    """Return a day's volume finding, with its former rows if it lost most of them.

    The next computation may cover all days, and would have no others to find the loss by.
    """
    if shown is None or not is_loss(rows, before := rows_before(shown)):
        return finding
    return replace(finding, numbers={**finding.numbers, FELL_FROM: before})
