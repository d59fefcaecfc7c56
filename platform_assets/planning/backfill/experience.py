"""What backfills of before took: the start that each has, what a job costs, what a day of each table does.

A day's seconds are known from every recomputation. What a backfill takes beyond them, only whole backfills tell: Java
starts, and compiles what it executes for the first time; jobs are planned, and their days counted. So that is fitted to
what these took, once there are enough of them; it fits the machine and the tables that they ran on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log, sqrt
from statistics import median

from platform_assets.records.history import Timing

ENOUGH = 3
"""Backfills of before from which on they are believed."""
_START_S, _JOB_S = 12.0, 1.0
"""What a start and a job took on a machine of two cores; believed until there are enough backfills of one's own."""
_TAILS = (3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38, 1.37)
"""Student's t at nine tenths, from one degree of freedom on; with more of them about the last."""
_LEAST_SPREAD = 0.05
"""Backfills that were all alike say nothing of the next one being so."""


@dataclass(frozen=True)
class PastRun:
    """A backfill that was published.

    Args:
        seconds: of computing, from the start of Spark on.
        starts: in how many sittings, so that Spark started as often.
        jobs: of tables and rollout steps that computed days.
        days: that were computed, by table.
    """

    seconds: float
    starts: int
    jobs: int
    days: Mapping[str, int]


@dataclass(frozen=True)
class Overhead:
    """What a backfill takes besides its days.

    Args:
        start_s: once.
        job_s: for each table in each step of the rollout.
        runs: backfills on which that rests; 0 where it is assumed.
        spread: of the logarithm of what these took over what would have been said; None where nobody can say.
    """

    start_s: float = _START_S
    job_s: float = _JOB_S
    runs: int = 0
    spread: float | None = None

    def between(self, low_s: float, high_s: float) -> tuple[float, float] | None:
        """From where to where, in four of five cases, something lies that is said to take from one to the other.

        Args:
            low_s: seconds of the least that is done, with start and jobs.
            high_s: seconds of the most.
        """
        if self.spread is None:
            return None
        freedom = max(self.runs - 2, 1)
        tail = _TAILS[min(freedom, len(_TAILS)) - 1]
        factor = exp(tail * max(self.spread, _LEAST_SPREAD) * sqrt(1 + 1 / self.runs))
        return low_s / factor, high_s * factor


def seconds_per_day(timings: Iterable[Timing]) -> dict[str, float]:
    """What a day takes in a large job, by table: the median of those of at least half as many days as the largest.

    In a small one the start of the job weighs more than the days.
    """
    by_table: defaultdict[str, list[Timing]] = defaultdict(list)
    for timing in timings:
        by_table[timing.table].append(timing)
    per_day = {}
    for table, known in by_table.items():
        most = max(one.days for one in known)
        per_day[table] = median(one.seconds / one.days for one in known if 2 * one.days >= most)
    return per_day


def overhead(runs: Collection[PastRun], per_day: Mapping[str, float]) -> Overhead:
    """Fit start and job to what backfills took beyond their days; neither is negative.

    The line is Theil and Sen's, through the medians: a backfill that met a busy machine does not bend it.

    Args:
        runs: of before, in any order.
        per_day: seconds of a day, by table; runs with days of other tables say nothing.
    """
    usable = [
        run for run in runs if run.starts > 0 and run.jobs > 0 and run.seconds > 0 and run.days.keys() <= per_day.keys()
    ]
    if len(usable) < ENOUGH:
        return Overhead()
    beyond = [(run.jobs / run.starts, (run.seconds - _of_days(run, per_day)) / run.starts) for run in usable]
    job_s = max(_slope(beyond), 0.0)
    start_s = max(median(seconds - job_s * jobs for jobs, seconds in beyond), 0.0)
    logs = [
        log(run.seconds / max(start_s * run.starts + job_s * run.jobs + _of_days(run, per_day), 0.1)) for run in usable
    ]
    spread = sqrt(sum(one * one for one in logs) / max(len(logs) - 2, 1))
    return Overhead(start_s, job_s, len(usable), spread)


def _of_days(run: PastRun, per_day: Mapping[str, float]) -> float:
    return sum(per_day[table] * days for table, days in run.days.items())


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between any two points, each with the weight of how far they are apart."""
    weighted = sorted(
        ((b[1] - a[1]) / (b[0] - a[0]), abs(b[0] - a[0])) for a, b in combinations(points, 2) if a[0] != b[0]
    )
    if not weighted:
        return _JOB_S
    half, so_far = sum(weight for _, weight in weighted) / 2, 0.0
    for slope, weight in weighted:
        so_far += weight
        if so_far >= half:
            return slope
    return weighted[-1][0]
