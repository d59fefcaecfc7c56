"""What a backfill will cost, between what and what, and on how much experience that rests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from platform_assets.planning.backfill.experience import Experience
from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.estimates import Estimate, written
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import Reason
from platform_assets.records.history import DayMark

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
        experience: what the start, each step, each job and each day take.
        core_hours: of Spark's cores.
        money: of these, at the price of the plan file; None without one.
        unknown: tables of which no day was ever timed; what is said leaves them out.
    """

    rows: int
    bytes: int
    seconds: float
    between: tuple[float, float] | None
    experience: Experience
    core_hours: float
    money: Decimal | None
    unknown: tuple[str, ...] = ()


def timed(
    steps: Iterable[PlannedStep],
    rollout: Sequence[RolloutStep],
    experience: Experience,
    marks: Mapping[str, Mapping[date, DayMark]],
) -> tuple[PlannedStep, ...]:
    """The same steps, each with the seconds that its days take in the jobs of a rollout, by what such parts took.

    Args:
        steps: of the plan.
        rollout: the same days in their order: each table of each step is a job.
        experience: what the parts took; where it does not know a table, nothing is estimated.
        marks: of the days of each table: those that a rollback put back took no time, and are as large as they were.
    """
    jobs = Counter(table for step in rollout for table in step.days)

    def estimate(step: PlannedStep) -> Estimate | None:
        size = step.estimate or written(step.days, marks.get(step.table, {}))
        if size is None or not experience.knows(step.table):
            return None
        return replace(size, seconds=experience.of_days(step.table, len(step.days), jobs[step.table]))

    return tuple(replace(step, estimate=estimate(step)) for step in steps)


def price(
    steps: Iterable[PlannedStep],
    rollout: Sequence[RolloutStep],
    experience: Experience,
    cores: int,
    budget: Budget,
) -> Price:
    """Price the steps of a plan: what each takes, and the start and the steps of the rollout besides.

    Args:
        steps: of the plan, timed.
        rollout: the same days in their order.
        experience: what start and steps took, and how far off that may be.
        cores: that Spark computes with.
        budget: with the price of a core's hour.
    """
    rows = size = 0
    certain = possible = 0.0
    priced: set[str] = set()
    unknown: list[str] = []
    for step in steps:
        if step.estimate is None:
            unknown.append(step.table)
            continue
        priced.add(step.table)
        rows, size = rows + step.estimate.rows, size + step.estimate.bytes
        takes = step.estimate.seconds
        needed = sum(not _REACHED.issuperset(reasons) for reasons in step.reasons.values())
        possible += takes
        certain += takes * needed / len(step.days)
    seconds, between = 0.0, None
    if priced:
        besides = experience.start_s + experience.step_s * sum(bool(priced & step.days.keys()) for step in rollout)
        seconds = besides + possible
        between = None if unknown else experience.between(besides + certain, seconds)
    hours = seconds * cores / 3600
    hourly = budget.price_per_core_hour
    money = None if hourly is None else (Decimal(hours) * hourly).quantize(Decimal("0.01"))
    return Price(rows, size, seconds, between, experience, hours, money, tuple(unknown))
