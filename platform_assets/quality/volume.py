"""Volume: days with unusually many or few rows, and when that is more than an odd day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from types import MappingProxyType

from platform_assets.contracts import Contract, Severity
from platform_assets.quality.baseline import History, Interval, Undecided
from platform_assets.quality.findings import Finding
from platform_assets.quality.seasonality import Rhythm
from platform_assets.words import counted


@dataclass(frozen=True)
class Verdict:
    """What can be said about the volume of one day.

    Args:
        rows: rows it has.
        usual: what is usual for it, or why nothing can be said.
        lately: days outside on the same side among the last ones, this one included; 0 for a usual day.
        severity: what follows for a day outside; None for any other.
        shown: rows that readers have of the day now, where these would be held today as well.
        farther: rows that readers have of the day now, where these are farther from what is usual.
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
        """Whether there was enough to compare the day with."""
        return not isinstance(self.usual, Undecided)

    @property
    def numbers(self) -> dict[str, int | Decimal]:
        """The figures behind it, by name; without an interval only the rows."""
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
    """Judge the staged days of a table by its other days.

    A day outside its interval blocks if it is empty, if the contract says so of every day, or if enough of the last
    days were outside on the same side. On the same side, because a holiday week has days with too many rows and days
    with too few, while a fault goes on in one direction. Days that share their rows are not counted so: a single odd
    day stays in a month to date until the month ends.

    Args:
        contract: says what blocks.
        rhythm: which days are alike.
        staged: rows of every staged day, 0 for an empty one.
        published: rows of days to compare with. Leave out held days, and what the same run or backfill published, or
            a fault becomes its own measure; staged and refused days are left out here.
        refused: days held by this check; they count as outside on either side.
        shown: rows that readers have now of staged days; those without are left out.

    Returns:
        A verdict for every staged day, also where nothing can be said.
    """
    refused = set(refused) - set(staged)
    others = {day: rows for day, rows in published.items() if day not in staged and day not in refused}
    history = History(others, rhythm)
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
    """What is wrong with the volume of a day."""
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
