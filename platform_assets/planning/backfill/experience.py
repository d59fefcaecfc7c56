"""What backfills of before took: the start that each has, what steps and jobs cost, what a day of each table does.

A job of one day takes nearly as long as one of thirty, and the first job of a process several times as long as the
next, since Java compiles what it executes. So days, jobs, steps and the start are told apart by fitting them together,
to what whole backfills took, what each table took in them, and what tables took in other recomputations. Until
there is enough of that, what is assumed holds them near a machine of two cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log, sqrt
from statistics import median

from platform_assets.planning.backfill.fit import Observed, fitted, said
from platform_assets.records.history import Timing

ENOUGH = 3
"""Backfills of before from which on they tell how far off what is said may be."""
START, FIRST_JOB, STEP, JOB = "start", "first job", "step", "job"
"""Names of costs; the others have those of tables, each with the seconds of a day."""
_ASSUMED = {START: 3.0, FIRST_JOB: 5.0, STEP: 0.5, JOB: 2.0}
"""Seconds on a machine of two cores."""
_LEAST_OF_DAYS = 0.25
"""Share of a job's seconds that its days have at least, as far as nobody knows better."""
_LEAST_DAY_S = 0.001
_FADES = 0.95
"""Weight of a backfill beside the next newer one: machines, code and their load change."""
_OTHERS = 5
_WEIGHT_OF_OTHERS = 0.3
"""The newest recomputations of a table that were no backfill; how warm their process was, nobody knows."""
_ROUNDS_FROM_NEAR = 3
_TAILS = (3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38, 1.37)
"""Student's t at nine tenths, from one degree of freedom on; with more of them about the last."""
_NOT_ABOVE = 0.9
"""Share of backfills that an end of the interval leaves on its side."""
_LEAST_SPREAD = 0.05
"""Backfills that were all alike say nothing of the next one being so."""


@dataclass(frozen=True)
class PastRun:
    """A backfill that was published.

    Args:
        seconds: of computing, from the start of Spark on.
        starts: in how many sittings, so that Spark started as often.
        steps: of the rollout that computed days.
        jobs: in how many of them each table did; the table that was computed first comes first.
        days: that were computed, by table.
        took: seconds of each table's jobs, as far as they are known.
    """

    seconds: float
    starts: int
    steps: int
    jobs: Mapping[str, int]
    days: Mapping[str, int]
    took: Mapping[str, float]


@dataclass(frozen=True)
class Experience:
    """What a backfill's parts take.

    Args:
        costs: seconds of each, by its name.
        runs: backfills on which they rest; 0 where they are assumed.
        misses: of each of these, the logarithm of what it took over what the others say of it; none where they are too
            few.
    """

    costs: Mapping[str, float]
    runs: int = 0
    misses: tuple[float, ...] = ()

    @property
    def start_s(self) -> float:
        """Once: Spark starts, and compiles what the first job executes."""
        return self.costs[START] + self.costs[FIRST_JOB]

    @property
    def step_s(self) -> float:
        """For each step of the rollout."""
        return self.costs[STEP]

    @property
    def job_s(self) -> float:
        """For each table in each step of the rollout."""
        return self.costs[JOB]

    def knows(self, table: str) -> bool:
        """Whether a day of a table was ever timed."""
        return table in self.costs

    def of_days(self, table: str, days: int, jobs: int) -> float:
        """Seconds of a table's days in so many jobs."""
        return said({JOB: jobs, table: days}, self.costs)

    def between(self, low_s: float, high_s: float) -> tuple[float, float] | None:
        """From where to where, in four of five cases, something lies that is said to take from one to the other.

        That is Student's interval, or as far as the miss that one of ten exceeds, where that is farther: a machine that
        is busy at times makes backfills take twice as long, and none takes half.

        Args:
            low_s: seconds of the least that is done, with start and jobs.
            high_s: seconds of the most.
        """
        if not self.misses:
            return None
        count = len(self.misses)
        tail = _TAILS[min(max(count - 2, 1), len(_TAILS)) - 1]
        spread = max(sqrt(sum(miss * miss for miss in self.misses) / count), _LEAST_SPREAD)
        usual = tail * spread * sqrt(1 + 1 / count)
        ordered, rank = sorted(self.misses), min(ceil(_NOT_ABOVE * (count + 1)), count)
        under, over = max(usual, -ordered[count - rank]), max(usual, ordered[rank - 1])
        return low_s / exp(under), high_s * exp(over)


def experience(runs: Iterable[PastRun], timings: Iterable[Timing], tables: Collection[str]) -> Experience:
    """What the parts of a backfill of some tables take, by what was taken before.

    Args:
        runs: backfills of before, newest first; those with days of tables of which nothing is known say nothing.
        timings: of recomputations that were no backfills, oldest first, and of backfills of before these.
        tables: that are asked about; of others only what tells of the same costs is looked at.
    """
    usable = [run for run in runs if run.starts > 0 and run.seconds > 0 and run.jobs]
    wanted = {*tables, *(table for run in usable for table in run.jobs)}
    large = _in_large_jobs(timing for timing in timings if timing.table in wanted)
    assumed = _ASSUMED | {table: median(map(_day_s, known)) for table, known in large.items()}
    for run in usable:
        for table, seconds in run.took.items():
            if run.days.get(table):
                assumed.setdefault(table, _day_s(Timing(table, run.days[table], seconds)))
    usable = [run for run in usable if run.days.keys() <= assumed.keys()]
    others = [
        Observed({JOB: 1, one.table: one.days}, one.seconds, _WEIGHT_OF_OTHERS)
        for known in large.values()
        for one in known[-_OTHERS:]
    ]
    by_run = [tuple(_observed(run, _FADES**age)) for age, run in enumerate(usable)]
    costs = fitted([*others, *(one for of_run in by_run for one in of_run)], assumed)
    return Experience(costs, len(usable), _misses(usable, by_run, others, assumed, costs))


def _in_large_jobs(timings: Iterable[Timing]) -> dict[str, list[Timing]]:
    """Those of at least half as many days as the table's largest: in a small one, days weigh nothing beside the job."""
    by_table: defaultdict[str, list[Timing]] = defaultdict(list)
    for timing in timings:
        by_table[timing.table].append(timing)
    most = {table: max(one.days for one in known) for table, known in by_table.items()}
    return {table: [one for one in known if 2 * one.days >= most[table]] for table, known in by_table.items()}


def _day_s(timing: Timing) -> float:
    """A day's share of a job, without what the job is assumed to take by itself."""
    days = max(timing.seconds - _ASSUMED[JOB], _LEAST_OF_DAYS * timing.seconds)
    return max(days / timing.days, _LEAST_DAY_S)


def _parts(run: PastRun) -> dict[str, float]:
    return {START: run.starts, FIRST_JOB: run.starts, STEP: run.steps, JOB: sum(run.jobs.values()), **run.days}


def _observed(run: PastRun, weight: float) -> Iterator[Observed]:
    """What a backfill took, and what each table took in it."""
    yield Observed(_parts(run), run.seconds, weight)
    if run.starts > 1:  # nobody knows which tables came first in the later sittings
        return
    first = next(iter(run.jobs))
    for table, seconds in run.took.items():
        parts = {JOB: run.jobs[table], table: run.days[table]}
        yield Observed(parts | {FIRST_JOB: 1} if table == first else parts, seconds, weight)


def _misses(
    runs: Sequence[PastRun],
    by_run: Sequence[tuple[Observed, ...]],
    others: Sequence[Observed],
    assumed: Mapping[str, float],
    costs: Mapping[str, float],
) -> tuple[float, ...]:
    """How far backfills are from what all others say of them: what a fit has seen, it meets too well."""
    if len(runs) < ENOUGH:
        return ()
    logs = []
    for number, run in enumerate(runs):
        rest = [one for other, of_run in enumerate(by_run) if other != number for one in of_run]
        without = fitted([*others, *rest], assumed, costs, _ROUNDS_FROM_NEAR)
        logs.append(log(run.seconds / max(said(_parts(run), without), 0.1)))
    return tuple(logs)
