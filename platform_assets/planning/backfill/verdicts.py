"""What the gates of a plan file say of the days that are staged so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from platform_assets.planning.backfill.plan_file import Gate

Number = int | float | Decimal


@dataclass(frozen=True)
class Figures:
    """One staged day beside the same day of the release; every pair is before and after.

    Args:
        table: of the day.
        day: the day.
        rows: number of rows.
        keys: number of different keys.
        sums: of the amounts of the table, and of every column that a gate names.
    """

    table: str
    day: date
    rows: tuple[int, int]
    keys: tuple[int, int]
    sums: Mapping[str, tuple[Number, Number]]

    def of(self, gate: Gate) -> tuple[Decimal, Decimal]:
        """What a gate looks at."""
        if gate.metric == "sum":
            before, after = self.sums.get(gate.column or "", (0, 0))
        else:
            before, after = self.rows if gate.metric == "rows" else self.keys
        return Decimal(str(before)), Decimal(str(after))


@dataclass(frozen=True)
class GateVerdict:
    """What one gate says.

    Args:
        gate: which.
        passed: whether the staged days keep its tolerance.
        sentence: the figures, for a person.
        worst: the single days that differ most, worst first, as sentences.
    """

    gate: Gate
    passed: bool
    sentence: str
    worst: tuple[str, ...] = ()


def judged(gates: Iterable[Gate], staged: Sequence[Figures]) -> tuple[GateVerdict, ...]:
    """Hold what is staged against the release.

    Days that the release does not have say nothing: there is nothing to compare them with. Nor does a gate of whose
    table no day is staged yet.

    Args:
        gates: of the plan file.
        staged: the figures of all days that are staged so far.
    """
    verdicts = []
    for gate in gates:
        days = [day for day in staged if day.table == gate.table and day.rows[0]]
        if days:
            verdicts.append(_verdict(gate, days))
    return tuple(verdicts)


def difference_percent(before: Decimal, after: Decimal) -> Decimal:
    """How far a figure is from what it was, in percent of that; 100 where it was nothing, or no number, and is not."""
    if before == after or (before.is_nan() and after.is_nan()):
        return Decimal(0)
    if not before or not before.is_finite() or not after.is_finite():
        return Decimal(100)
    return abs((after - before) / before) * 100


def _verdict(gate: Gate, days: Sequence[Figures]) -> GateVerdict:
    pairs = {day.day: day.of(gate) for day in days}
    before = sum((pair[0] for pair in pairs.values()), Decimal(0))
    after = sum((pair[1] for pair in pairs.values()), Decimal(0))
    total = difference_percent(before, after)
    apart = sorted(((difference_percent(*pair), day) for day, pair in pairs.items()), reverse=True)
    too_far = gate.each_day and apart[0][0] > gate.tolerance_percent
    what = f"{gate.metric} of {gate.column}" if gate.column else gate.metric
    sentence = (
        f"{gate.table}: {what} of {len(days):,} staged days {before:,} before and {after:,} after, "
        f"{total:.2f} % apart; {gate.tolerance_percent} % allowed{' on each day, too' if gate.each_day else ''}"
    )
    worst = tuple(
        f"{day}: {pairs[day][0]:,} before, {pairs[day][1]:,} after, {far:.2f} % apart" for far, day in apart[:3] if far
    )
    return GateVerdict(gate, total <= gate.tolerance_percent and not too_far, sentence, worst)
