"""Decide whether a backfill may continue: gates on staged days, budget and hours; and estimate the remaining time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext

from platform_assets.planning.backfill.plan_file import Budget, Gate, Service
from platform_assets.words import counted

_WARN_PERCENT = 80
_FAR = timedelta(days=400)
"""An end that is further off bounds no backfill."""


def spent(budget: Budget, seconds: float, size: int, cores: int | None) -> str:
    """Return which budget is used up; empty if none is.

    Args:
        seconds: computed so far, all sittings together.
        size: bytes staged so far.
        cores: cores of Spark, if known.
    """
    for name, allowed, used in _used(budget, seconds, size, cores):
        if used >= allowed:
            return f"the budget of {allowed:,} {name} is used up ({used:,.2f})"
    return ""


def nearly_spent(budget: Budget, seconds: float, size: int, cores: int | None) -> tuple[str, ...]:
    """Return which budget is used for four fifths or more, but not up, in the same words each time."""
    return tuple(
        f"{_WARN_PERCENT} % of the budget of {allowed:,} {name} are used"
        for name, allowed, used in _used(budget, seconds, size, cores)
        if allowed * _WARN_PERCENT / 100 <= used < allowed
    )


def may_compute(service: Service, now: datetime) -> bool:
    """Return whether a moment, in UTC, is in the hours of a plan; their end is not."""
    if service.hours is None:
        return True
    first, last = (time.fromisoformat(end) for end in service.hours.split("-"))
    at = now.time()
    return first <= at < last if first < last else (at >= first or at < last)


def seconds_left(service: Service, now: datetime) -> float | None:
    """Return how long it may still compute within its hours; None without an end.

    Args:
        now: in UTC.
    """
    if service.until is None:
        return None
    end = min(datetime.fromisoformat(service.until).replace(tzinfo=UTC), now + _FAR)
    if service.hours is None:
        return max((end - now).total_seconds(), 0.0)
    first, last = (time.fromisoformat(text) for text in service.hours.split("-"))
    left = 0.0
    for number in range(-1, (end - now).days + 2):
        day = now.date() + timedelta(number)
        opens, closes = (datetime.combine(day, at, UTC) for at in (first, last))
        closes += timedelta(last < first)
        left += max((min(closes, end) - max(opens, now)).total_seconds(), 0.0)
    return left


def _used(budget: Budget, seconds: float, size: int, cores: int | None) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield each limit's name, its value, and how much of it is used."""
    money = Decimal(seconds) * (cores or 0) * (budget.price_per_core_hour or 0) / 3600
    used = {"bytes": Decimal(size), "minutes": Decimal(seconds) / 60, "money": money}
    for name, is_used in used.items():
        allowed = getattr(budget, name)
        if allowed is not None:
            yield name, Decimal(allowed), is_used


@dataclass(frozen=True)
class Standing:
    """State of a backfill at a moment.

    Args:
        done: table-days that are staged, or turned out to be up to date.
        seconds: computing seconds so far, of all sittings.
        explained_seconds: expected seconds.
        bytes: staged so far.
        left_alone: done days that turned out to be up to date.
        money: cost so far; None without a price.
    """

    done: int
    days: int
    seconds: float
    explained_seconds: float
    bytes: int
    left_alone: int = 0
    money: Decimal | None = None

    @property
    def staged(self) -> int:
        """Return the number of staged table-days."""
        return self.done - self.left_alone

    @property
    def days_per_minute(self) -> float:
        """Return the rate so far, including the start of Spark."""
        return 60 * self.done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """Estimate the remaining seconds from the explanation at first, and more and more from the measured rate."""
        share = self.done / self.days if self.days else 1.0
        explained = max(self.explained_seconds - self.seconds, 0.0)
        by_rate = self.seconds / self.done * (self.days - self.done) if self.done else explained
        return (1 - share) * explained + share * by_rate


Number = int | float | Decimal


@dataclass(frozen=True)
class Figures:
    """A staged day and the same day of the release; every pair is before and after.

    Args:
        sums: sums of the table's amounts, and of every column that a gate of that metric names.
        changed: number of keys that changed, are new or gone.
        shifts: distance between the distributions of the same columns before and after, from 0 to 100.
    """

    table: str
    day: date
    rows: tuple[int, int]
    keys: tuple[int, int]
    sums: Mapping[str, tuple[Number, Number]]
    changed: int = 0
    nulls: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)

    def of(self, gate: Gate) -> tuple[Decimal, Decimal]:
        """Return a gate's figure, before and after."""
        column = gate.column or ""
        of_metric: dict[str, tuple[Number, Number]] = {
            "rows": self.rows,
            "keys": self.keys,
            "sum": self.sums.get(column, (0, 0)),
            "nulls": self.nulls.get(column, (0, 0)),
        }
        before, after = of_metric[gate.metric]
        return Decimal(str(before)), Decimal(str(after))

    def apart(self, gate: Gate) -> tuple[Decimal, Decimal]:
        """Return `(changed, before)` for a gate on one figure.

        If a column had no value on a day, all its present values are changed.
        """
        if gate.metric == "changed":
            return Decimal(self.changed), Decimal(self.keys[0])
        column = gate.column or ""
        had, has = (rows - nulls for rows, nulls in zip(self.rows, self.nulls.get(column, (0, 0)), strict=True))
        return Decimal(str(self.shifts.get(column, 0))) * (had or has) / 100, Decimal(had)


@dataclass(frozen=True)
class GateVerdict:
    """Result of one gate.

    Args:
        passed: whether the staged days are within its tolerance.
        worst: days that differ most, worst first, as sentences.
    """

    gate: Gate
    passed: bool
    sentence: str
    worst: tuple[str, ...] = ()


def judged(gates: Iterable[Gate], staged: Sequence[Figures]) -> tuple[GateVerdict, ...]:
    """Judge staged days against the release.

    Days that the release does not have are ignored: there is nothing to compare them with. So is a gate whose table has
    no staged day yet.
    """
    verdicts = []
    for gate in gates:
        days = [day for day in staged if day.table == gate.table and day.rows[0]]
        if days:
            with localcontext(prec=100):  # sums of 38 digits are compared as they are
                verdicts.append(_verdict(gate, days))
    return tuple(verdicts)


def difference_percent(before: Decimal, after: Decimal) -> Decimal:
    """Return how far a figure changed, in percent; 100 if it was nothing or NaN."""
    if before == after or (before.is_nan() and after.is_nan()):
        return Decimal(0)
    if not before or not before.is_finite() or not after.is_finite():
        return Decimal(100)
    return abs((after - before) / before) * 100


def _share(other: Decimal, of: Decimal) -> Decimal:
    """Return the changed share, in percent of everything before."""
    return other / of * 100 if of else Decimal(100 if other else 0)


def _verdict(gate: Gate, days: Sequence[Figures]) -> GateVerdict:
    is_one_figure = gate.metric in ("changed", "distribution")
    far = _share if is_one_figure else difference_percent
    pairs = {day.day: day.apart(gate) if is_one_figure else day.of(gate) for day in days}
    before, after = (sum((pair[at] for pair in pairs.values()), Decimal(0)) for at in (0, 1))
    total, staged = far(before, after), counted(len(days), "staged day")
    apart = sorted(((far(*pair), day) for day, pair in pairs.items()), reverse=True)
    too_far = gate.each_day and apart[0][0] > gate.tolerance_percent
    if is_one_figure:
        what, so = (
            ("changed keys", "are others") if gate.metric == "changed" else (f"distribution of {gate.column}", "apart")
        )
        figures = f"{what} of {staged}, {total:.2f} % {so}"
        worst = [f"{day}: {percent:.2f} % {so}" for percent, day in apart[:3] if percent]
    else:
        what = f"{gate.metric} of {gate.column}" if gate.column else gate.metric
        figures = f"{what} of {staged} {before:,} before and {after:,} after, {total:.2f} % apart"
        worst = [
            f"{day}: {pairs[day][0]:,} before, {pairs[day][1]:,} after, {percent:.2f} % apart"
            for percent, day in apart[:3]
            if percent
        ]
    sentence = (
        f"{gate.table}: {figures}; {gate.tolerance_percent} % allowed{' on each day, too' if gate.each_day else ''}"
    )
    return GateVerdict(gate, total <= gate.tolerance_percent and not too_far, sentence, tuple(worst))
