"""What a backfill will cost, between what and what, and on how much experience that rests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from platform_assets.planning.backfill.experience import Overhead, PastRun, overhead, seconds_per_day
from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import Reason
from platform_assets.records.history import Timing

_REACHED: frozenset[Reason] = frozenset({"upstream content", "reference data"})
"""Why a day is computed only if what it reads comes out differently."""


@dataclass(frozen=True)
class Price:
    """What a backfill will cost.

    Args:
        rows: written.
        bytes: written.
        seconds: from the start of Spark until all is staged, if every day that is reached is computed.
        between: fewest and most seconds, in four of five cases as far as the past tells; the fewest if no day is
            computed that is only reached. None where the past does not tell.
        overhead: what of it is no day's: the start, and each job.
        core_hours: of Spark's cores.
        money: of these, at the price of the plan file; None without one.
        unknown: tables of which no day was ever timed; what is said leaves them out.
    """

    rows: int
    bytes: int
    seconds: float
    between: tuple[float, float] | None
    overhead: Overhead
    core_hours: float
    money: Decimal | None
    unknown: tuple[str, ...] = ()


def price(
    steps: Iterable[PlannedStep],
    rollout: Sequence[RolloutStep],
    timings: Iterable[Timing],
    past: Sequence[PastRun],
    cores: int,
    budget: Budget,
) -> Price:
    """Price the steps of a plan by what their tables' days took before, and what backfills took beyond their days.

    Args:
        steps: of the plan.
        rollout: the same days in their order: each table of each step is a job.
        timings: of every recomputation of all tables, since backfills of before computed others, too.
        past: backfills of before.
        cores: that Spark computes with.
        budget: with the price of a core's hour.
    """
    per_day = seconds_per_day(timings)
    fixed = overhead(past, per_day)
    jobs = {table: sum(table in step.days for step in rollout) for step in rollout for table in step.days}
    rows = size = 0
    certain = possible = 0.0
    unknown: list[str] = []
    for step in steps:
        if step.estimate is None or step.table not in per_day:
            unknown.append(step.table)
            continue
        rows, size = rows + step.estimate.rows, size + step.estimate.bytes
        takes = fixed.job_s * jobs.get(step.table, 1) + per_day[step.table] * len(step.days)
        needed = sum(not _REACHED.issuperset(reasons) for reasons in step.reasons.values())
        possible += takes
        certain += takes * needed / len(step.days)
    seconds = possible + fixed.start_s if possible else 0.0
    between = fixed.between(certain + fixed.start_s, seconds) if seconds and not unknown else None
    hours = seconds * cores / 3600
    hourly = budget.price_per_core_hour
    money = None if hourly is None else (Decimal(hours) * hourly).quantize(Decimal("0.01"))
    return Price(rows, size, seconds, between, fixed, hours, money, tuple(unknown))
