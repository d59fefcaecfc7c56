"""What a backfill will cost, between what and what, and on how much experience that rests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from statistics import median, quantiles

from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.plan import PlannedStep
from platform_assets.records.history import DayMark

_ENOUGH = 3
"""Publications of a table from which on they say how far apart times lie."""


@dataclass(frozen=True)
class Price:
    """What a backfill will cost.

    Args:
        rows: written.
        bytes: written.
        seconds: of computing.
        between: fewest and most seconds, in four of five cases as far as the past tells; None where it does not.
        publications: of the least known table, on which the times rest.
        core_hours: of Spark's cores.
        money: of these, at the price of the plan file; None without one.
        unknown: tables of which no day was ever timed; what is said leaves them out.
    """

    rows: int
    bytes: int
    seconds: float
    between: tuple[float, float] | None
    publications: int
    core_hours: float
    money: Decimal | None
    unknown: tuple[str, ...] = ()


def price(
    steps: Iterable[PlannedStep], marks: Mapping[str, Mapping[date, DayMark]], cores: int, budget: Budget
) -> Price:
    """Price the steps of a plan by what their tables' days took before.

    The interval goes from the tenth to the ninetieth percentile of the seconds per day over a table's publications,
    each once, whatever its number of days: publications, not days, are what was measured. Tables are added up, as if
    all were slow together, so the true interval is narrower.

    Args:
        steps: of the plan.
        marks: of every loaded day, by table.
        cores: that Spark computes with.
        budget: with the price of a core's hour.
    """
    rows = size = 0
    seconds = low = high = 0.0
    least = 0
    unknown: list[str] = []
    is_known = True
    for step in steps:
        if step.estimate is None:
            unknown.append(step.table)
            continue
        rows, size = rows + step.estimate.rows, size + step.estimate.bytes
        seconds += step.estimate.seconds
        per_day = _seconds_per_day(marks.get(step.table, {}).values())
        least = min(least, len(per_day)) if least else len(per_day)
        if len(per_day) < _ENOUGH:
            is_known = False
            continue
        tenths = quantiles(per_day, n=10, method="inclusive")
        usual = median(per_day) or 1.0
        low += step.estimate.seconds * tenths[0] / usual
        high += step.estimate.seconds * tenths[-1] / usual
    hours = seconds * cores / 3600
    hourly = budget.price_per_core_hour
    between = (min(low, seconds), max(high, seconds)) if is_known and not unknown and seconds else None
    money = None if hourly is None else (Decimal(hours) * hourly).quantize(Decimal("0.01"))
    return Price(rows, size, seconds, between, least, hours, money, tuple(unknown))


def _seconds_per_day(marks: Iterable[DayMark]) -> list[float]:
    by_release: defaultdict[int, list[float]] = defaultdict(list)
    for mark in marks:
        if mark.seconds > 0:
            by_release[mark.release].append(mark.seconds)
    return [sum(days) / len(days) for days in by_release.values()]
