"""What a backfill will cost, between what and what, by what backfills of before and other recomputations took.

A job of one day takes nearly as long as one of thirty, so the start, each step of the rollout and each job cost
something besides the days. What these cost is assumed of a machine of two cores, a job no more than the shortest that
was seen, and a day of a table takes what the median of its days took. Both are then set right by the median of what
backfills of before took, and how far these lie from one another says how far off the next may be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from math import ceil
from statistics import median

from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.estimates import Estimate, written
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import Reason
from platform_assets.records.history import DayMark, Timing

ENOUGH = 3
"""Backfills of before from which on they tell how far off what is said may be."""
_START_S, _STEP_S, _JOB_S = 8.0, 0.5, 2.0
"""Assumed of a machine of two cores: Spark starts and compiles what its first job executes; a step; a job."""
_LEAST_OF_DAYS = 0.25
"""Share of a job's seconds that its days have at least."""
_LEAST_DAY_S = 0.001
_LEAST_SHARE = 0.25
"""Of what is assumed of starts, steps and jobs, however little backfills took beside their days."""
_NOT_ABOVE = 0.9
"""Share of backfills that an end of the interval leaves on its side."""
_FEW = 2.5
"""Of a few backfills the farthest is not the farthest that there is: how much of their span is added at each end."""
_LEAST_SPREAD = 0.05
"""Backfills that were all alike say nothing of the next one being so."""
_REACHED: frozenset[Reason] = frozenset({"upstream content", "reference data"})
"""Why a day is computed only if what it reads comes out differently."""


@dataclass(frozen=True)
class PastRun:
    """A backfill that was published.

    Args:
        seconds: of computing, from the start of Spark on.
        starts: in how many sittings, so that Spark started as often.
        steps: of the rollout that computed days.
        jobs: of all tables in all steps.
    """

    seconds: float
    starts: int
    steps: int
    jobs: int
    days: Mapping[str, int]


@dataclass(frozen=True)
class Experience:
    """What a backfill's parts take.

    Args:
        start_s: seconds once: Spark starts, and compiles what the first job executes.
        step_s: for each step of the rollout.
        job_s: for each table in each step of the rollout.
        day_s: for each day, of tables of which one was ever timed.
        ratios: of each of the backfills on which this rests, what it took over what is said of it.
    """

    start_s: float = _START_S
    step_s: float = _STEP_S
    job_s: float = _JOB_S
    day_s: Mapping[str, float] = field(default_factory=dict)
    ratios: tuple[float, ...] = ()

    @property
    def runs(self) -> int:
        """Return how many backfills it rests on; 0 where start, steps and jobs are assumed."""
        return len(self.ratios)

    def of_days(self, table: str, days: int, jobs: int) -> float:
        """Return seconds of a table's days in so many jobs."""
        return jobs * self.job_s + days * self.day_s[table]

    def between(self, low_s: float, high_s: float) -> tuple[float, float] | None:
        """Return the ends between which, in four of five cases, something lies that is estimated between others.

        None where backfills are too few to tell.
        """
        count = len(self.ratios)
        if count < ENOUGH:
            return None
        ordered, rank = sorted(self.ratios), min(ceil(_NOT_ABOVE * (count + 1)), count)
        low, high = ordered[count - rank], ordered[rank - 1]
        beyond = (high / low) ** (_FEW / count)
        least = 1 + _LEAST_SPREAD
        return low_s * min(low / beyond, 1 / least), high_s * max(high * beyond, least)


def experience(runs: Iterable[PastRun], timings: Iterable[Timing], tables: Collection[str]) -> Experience:
    """Return what the parts of a backfill of some tables take, by what was taken before.

    Args:
        runs: backfills of before; those with days of tables of which nothing is known say nothing.
        tables: that are asked about; of others only those of the backfills are looked at.
    """
    usable = [run for run in runs if run.starts > 0 and run.seconds > 0 and run.jobs]
    by_table: defaultdict[str, list[Timing]] = defaultdict(list)
    for timing in timings:
        if timing.table in tables or any(timing.table in run.days for run in usable):
            by_table[timing.table].append(timing)
    shortest = median(min(one.seconds for one in known) for known in by_table.values()) if by_table else _JOB_S
    assumed_job_s = min(_JOB_S, (1 - _LEAST_OF_DAYS) * shortest)
    day_s = {table: _day_seconds(known, assumed_job_s) for table, known in by_table.items()}
    usable = [run for run in usable if run.days.keys() <= day_s.keys()]
    if not usable:
        return Experience(job_s=assumed_job_s, day_s=day_s)

    def days(run: PastRun) -> float:
        return sum(count * day_s[table] for table, count in run.days.items())

    def besides(run: PastRun) -> float:
        return run.starts * _START_S + run.steps * _STEP_S + run.jobs * assumed_job_s

    # Where days take hours, what they take a little more or less hides the start.
    brief = sorted(usable, key=lambda run: days(run) / besides(run))[: len(usable) // 2 + 1]
    share = max(median((run.seconds - days(run)) / besides(run) for run in brief), _LEAST_SHARE)
    ratios = [run.seconds / (share * besides(run) + days(run)) for run in usable]
    middle = median(ratios)
    start_s, step_s, job_s = (part * share * middle for part in (_START_S, _STEP_S, assumed_job_s))
    by_day = {table: seconds * middle for table, seconds in day_s.items()}
    return Experience(start_s, step_s, job_s, by_day, tuple(ratio / middle for ratio in ratios))


def _day_seconds(timings: Sequence[Timing], job_s: float) -> float:
    """Return the seconds of the median day, by jobs of at least half as many days as the largest."""
    most = max(one.days for one in timings)
    large = [one for one in timings if 2 * one.days >= most]
    days = (max(one.seconds - job_s, _LEAST_OF_DAYS * one.seconds) / one.days for one in large)
    return max(median(days), _LEAST_DAY_S)


@dataclass(frozen=True)
class Price:
    """What a backfill will cost.

    Args:
        bytes: written.
        seconds: from the start of Spark until all is staged, if every day that is reached is computed.
        between: fewest and most seconds, in four of five cases as far as the past tells; the fewest if no day is
            computed that is only reached. None where the past does not tell.
        experience: what the start, each step, each job and each day take.
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
    """Return the same steps, each with the seconds that its days take in the jobs of a rollout.

    Args:
        rollout: the same days in their order: each table of each step is a job.
        experience: what the parts took; where it does not know a table, nothing is estimated.
        marks: of the days of each table: those that a rollback put back took no time, and are as large as they were.
    """
    jobs = Counter(table for step in rollout for table in step.days)

    def estimate(step: PlannedStep) -> Estimate | None:
        size = step.estimate or written(step.days, marks.get(step.table, {}))
        if size is None or step.table not in experience.day_s:
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
        experience: what start and steps took, and how far off that may be.
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
