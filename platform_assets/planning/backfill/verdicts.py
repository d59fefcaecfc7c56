"""What the gates of a plan file say of the days that are staged so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.words import counted

Number = int | float | Decimal


@dataclass(frozen=True)
class Figures:
    """One staged day beside the same day of the release; every pair is before and after.

    Args:
        table: of the day.
        day: the day.
        rows: number of rows.
        keys: number of different keys.
        sums: of the amounts of the table, and of every column that a gate of that metric names.
        changed: keys that have other values, are new or gone.
        nulls: of columns that gates name.
        shifts: of the same columns, how far their distribution is from what it was, from 0 to 100.
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
        """What a gate of two figures looks at, before and after."""
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
        """What a gate of a single figure looks at: how much of what there was is another, and how much there was.

        Of a day on which a column had no value, all that it has now is another.
        """
        if gate.metric == "changed":
            return Decimal(self.changed), Decimal(self.keys[0])
        column = gate.column or ""
        had, has = (rows - nulls for rows, nulls in zip(self.rows, self.nulls.get(column, (0, 0)), strict=True))
        return Decimal(str(self.shifts.get(column, 0))) * (had or has) / 100, Decimal(had)


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
        staged: the figures of all days that are staged so far.
    """
    verdicts = []
    for gate in gates:
        days = [day for day in staged if day.table == gate.table and day.rows[0]]
        if days:
            verdicts.append((_apart if gate.metric in ("changed", "distribution") else _verdict)(gate, days))
    return tuple(verdicts)


def difference_percent(before: Decimal, after: Decimal) -> Decimal:
    """How far a figure is from what it was, in percent of that; 100 where it was nothing, or no number, and is not."""
    if before == after or (before.is_nan() and after.is_nan()):
        return Decimal(0)
    if not before or not before.is_finite() or not after.is_finite():
        return Decimal(100)
    return abs((after - before) / before) * 100


def _apart(gate: Gate, days: Sequence[Figures]) -> GateVerdict:
    """Of what is one figure and not two: how much is another than it was, of all there was."""

    def share(other: Decimal, of: Decimal) -> Decimal:
        return other / of * 100 if of else Decimal(100 if other else 0)

    pairs = {day.day: day.apart(gate) for day in days}
    sums = [sum((pair[at] for pair in pairs.values()), Decimal(0)) for at in (0, 1)]
    total = share(sums[0], sums[1])
    worst = sorted(((share(*pair), day) for day, pair in pairs.items()), reverse=True)
    too_far = gate.each_day and worst[0][0] > gate.tolerance_percent
    changed = gate.metric == "changed"
    what, so = ("changed keys", "are others") if changed else (f"distribution of {gate.column}", "apart")
    sentence = (
        f"{gate.table}: {what} of {counted(len(days), 'staged day')}, {total:.2f} % {so}; "
        f"{gate.tolerance_percent} % allowed{' on each day, too' if gate.each_day else ''}"
    )
    lines = tuple(f"{day}: {far:.2f} % {so}" for far, day in worst[:3] if far)
    return GateVerdict(gate, total <= gate.tolerance_percent and not too_far, sentence, lines)


def _verdict(gate: Gate, days: Sequence[Figures]) -> GateVerdict:
    pairs = {day.day: day.of(gate) for day in days}
    before = sum((pair[0] for pair in pairs.values()), Decimal(0))
    after = sum((pair[1] for pair in pairs.values()), Decimal(0))
    total = difference_percent(before, after)
    apart = sorted(((difference_percent(*pair), day) for day, pair in pairs.items()), reverse=True)
    too_far = gate.each_day and apart[0][0] > gate.tolerance_percent
    what = f"{gate.metric} of {gate.column}" if gate.column else gate.metric
    sentence = (
        f"{gate.table}: {what} of {counted(len(days), 'staged day')} {before:,} before and {after:,} after, "
        f"{total:.2f} % apart; {gate.tolerance_percent} % allowed{' on each day, too' if gate.each_day else ''}"
    )
    worst = tuple(
        f"{day}: {pairs[day][0]:,} before, {pairs[day][1]:,} after, {far:.2f} % apart" for far, day in apart[:3] if far
    )
    return GateVerdict(gate, total <= gate.tolerance_percent and not too_far, sentence, worst)
