"""A backfill: the object that is explained, approved and applied; its cost and approvals.

A job of one day takes nearly as long as one of thirty, so the start, each step of the rollout and each job have a cost
besides the days. These costs are assumed for a machine of two cores; a job costs no more than the shortest seen, a day
the median of its table's days. Both are corrected by the median ratio of earlier backfills, whose spread gives the
range of the next one.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from math import ceil
from statistics import median

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import Budget, PlanFile
from platform_assets.planning.plan import Estimate, Plan, PlannedStep, written
from platform_assets.planning.reasons import Reason
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import DayMark, Timing

ENOUGH = 3
"""Earlier backfills from which on an interval of the estimate is given."""
_START_S, _STEP_S, _JOB_S = 8.0, 0.5, 2.0
"""Assumed of a machine of two cores: Spark starts and compiles what its first job executes; a step; a job."""
_LEAST_OF_DAYS = 0.25
"""Share of a job's seconds that its days have at least."""
_LEAST_DAY_S = 0.001
_LEAST_SHARE = 0.25
"""Smallest factor for the assumed cost of starts, steps and jobs."""
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
    """A published backfill.

    Args:
        seconds: computing seconds, from the start of Spark.
        starts: number of sittings, so starts of Spark.
        steps: steps of the rollout that computed days.
        jobs: jobs of all tables in all steps.
    """

    seconds: float
    starts: int
    steps: int
    jobs: int
    days: Mapping[str, int]


@dataclass(frozen=True)
class Experience:
    """Cost of a backfill's parts.

    Args:
        start_s: seconds once: Spark starts, and compiles what the first job executes.
        step_s: for each step of the rollout.
        job_s: for each table in each step of the rollout.
        day_s: for each day, by table; only tables with a timed day.
        ratios: actual divided by estimated time of each earlier backfill.
    """

    start_s: float = _START_S
    step_s: float = _STEP_S
    job_s: float = _JOB_S
    day_s: Mapping[str, float] = field(default_factory=dict)
    ratios: tuple[float, ...] = ()

    @property
    def runs(self) -> int:
        """Return the number of earlier backfills; 0 if start, steps and jobs are assumed."""
        return len(self.ratios)

    def of_days(self, table: str, days: int, jobs: int) -> float:
        """Return the seconds of a table's days in so many jobs."""
        return jobs * self.job_s + days * self.day_s[table]

    def between(self, low_s: float, high_s: float) -> tuple[float, float] | None:
        """Return the range around an estimate that holds in four of five cases.

        None if there are too few backfills.
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
    """Return the cost of parts of a backfill of some tables, from earlier backfills.

    Args:
        runs: earlier backfills; those with days of unknown tables are ignored.
        tables: tables to estimate; others count only as part of these backfills.
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
    """Return the seconds of a median day, from jobs of at least half as many days as the largest."""
    most = max(one.days for one in timings)
    large = [one for one in timings if 2 * one.days >= most]
    days = (max(one.seconds - job_s, _LEAST_OF_DAYS * one.seconds) / one.days for one in large)
    return max(median(days), _LEAST_DAY_S)


@dataclass(frozen=True)
class Price:
    """What a backfill will cost.

    Args:
        bytes: written.
        seconds: from the start of Spark until everything is staged, if every reached day is computed.
        between: fewest and most seconds, in four of five cases by past backfills; the fewest if no merely reached day
            is computed. None without enough past backfills.
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
    """Return the steps, each with the seconds of its days in the jobs of a rollout.

    Args:
        rollout: the same days in rollout order: each table of each step is a job.
        experience: cost of parts; tables that it lacks are not estimated.
        marks: marks of each table's days; days that a rollback restored took no time, and have their earlier size.
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
    """Price the steps of a plan: each step, the start, and the steps of the rollout."""
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


_HASH_DIGITS = 32
"""With sixteen, a patient person could make two plans with one hash, and have one approved for the other."""


@dataclass(frozen=True)
class Obstacle:
    """An obstacle found before any work.

    Args:
        what: the obstacle, as a sentence.
        blocks: whether it prevents the start.
        field: its field of the plan file, as a place; empty without one.
    """

    what: str
    todo: str
    blocks: bool = True
    field: tuple[int | str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return the obstacle, with the field."""
        return f"{'.'.join(map(str, self.field))}: {self.what}" if self.field else self.what


@dataclass(frozen=True)
class Narrowed:
    """Share of a table's days that is computed for some keys only.

    Args:
        absent: values that occur in no row, as column and value, each with the nearest existing ones.
    """

    table: str
    days: int
    rows: int
    of: int
    absent: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        """Return the percentage of rows that is computed; all others are copied."""
        return 100 * self.rows / self.of if self.of else 0.0


@dataclass(frozen=True)
class Consent:
    """Approvals that a backfill needs and has.

    Args:
        needed: how many different people; 0 for none.
        given: who approved exactly this hash; the owner does not count.
    """

    needed: int = 0
    because: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Return whether enough people have approved."""
        return len(self.given) >= self.needed


@dataclass(frozen=True)
class Backfill:
    """A plan file explained on the present platform.

    Args:
        days: days that it names, in rollout order.
        steps: the same days, by step of the rollout.
        up_to_date: requested days that need nothing, by table.
        versions: of code and configuration of the tables that are computed.
        gates: checks of their contracts, as `gates_of` writes them, by table.
        obstacles: obstacles found before any work, blocking ones first.
        protected: protected days among these, each with the reason, by table.
        put_back: rolled-back days that are computed again, each with the reason, by table.
        narrowed: share of each table that is computed, for some keys only.
        exposed: tables outside the plan that read its tables and become stale.
        notifies: exposures that get a message about the publication, each with the tables of the plan that it reads.
    """

    file: PlanFile
    days: tuple[date, ...]
    release: int
    request: Request
    plan: Plan
    steps: tuple[RolloutStep, ...]
    up_to_date: Mapping[str, tuple[date, ...]]
    versions: Mapping[str, Version]
    gates: Mapping[str, str]
    price: Price
    obstacles: tuple[Obstacle, ...] = ()
    protected: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    put_back: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    narrowed: tuple[Narrowed, ...] = ()
    exposed: tuple[str, ...] = ()
    notifies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    consent: Consent = Consent()

    @property
    def blocking(self) -> tuple[Obstacle, ...]:
        """Return the obstacles that prevent its start."""
        return tuple(obstacle for obstacle in self.obstacles if obstacle.blocks)

    @cached_property
    def hash(self) -> str:
        """Return the hash of everything that a person approves."""
        return backfill_hash(self.file, self.steps, self.versions, self.gates, self.put_back)


def gates_of(contract: Contract) -> str:
    """Return the checks of a contract, such as reconciliations, as a text to compare."""
    return repr((contract.checks, contract.reconciles, contract.settled))


def backfill_hash(
    file: PlanFile,
    steps: tuple[RolloutStep, ...],
    versions: Mapping[str, Version],
    gates: Mapping[str, str],
    put_back: Mapping[str, Collection[date]],
) -> str:
    """Hash what a plan does: the whole file, the days of each table, their code, and the gates.

    It includes days that a person rolled back: an earlier approval does not cover computing them again. It does not
    include estimates, the clock, the order of days or the content of inputs: a plan may get new rows on the same days,
    which gates judge.
    """
    days: defaultdict[str, set[str]] = defaultdict(set)
    for step in steps:
        for table, of_table in step.days.items():
            days[table].update(map(str, of_table))
    said: dict[str, object] = {
        "file": file.model_dump(mode="json"),
        "days": {table: sorted(of_table) for table, of_table in days.items()},
        "versions": {table: [version.code, version.configuration] for table, version in versions.items()},
        "gates": dict(gates),
    }
    if put_back:
        said["put_back"] = {table: sorted(map(str, of_table)) for table, of_table in put_back.items()}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:_HASH_DIGITS]


def approved_by(file: PlanFile, hash: str, decided: Iterable[PlanDecision]) -> tuple[str, ...]:
    """Return who approved exactly this backfill; its owner does not count."""
    return people(said.who for said in decided if said.hash == hash and not is_same(said.who, file.owner))


def people(names: Iterable[str]) -> tuple[str, ...]:
    """Return each person once, in the first spelling."""
    first: dict[str, str] = {}
    for name in sorted(names):
        first.setdefault(_person(name), name)
    return tuple(first.values())


def is_same(one: str, other: str) -> bool:
    """Return whether two names differ only by case, blanks or invisible characters."""
    return _person(one) == _person(other)


def reasons_to_ask(file: PlanFile, count: int, price: Price, oldest_beyond: date | None) -> tuple[str, ...]:
    """Return why a plan needs approval.

    Args:
        oldest_beyond: the oldest day beyond its restatement window; None without one.
    """
    asks, because = file.approvals, []
    if asks.above_days is not None and count > asks.above_days:
        because.append(f"it computes {count:,} days of tables, more than {asks.above_days:,}")
    if asks.above_money is not None and (price.money is None or price.money > asks.above_money):
        cost = "an unknown amount" if price.money is None else f"about {price.money:,}"
        because.append(f"it costs {cost}, more than {Decimal(asks.above_money):,}")
    if asks.beyond_window and oldest_beyond is not None:
        because.append(f"{oldest_beyond} lies beyond the restatement window")
    return tuple(because)


def beyond_window(catalogue: Catalogue, days: Mapping[str, Collection[date]], newest: date) -> date | None:
    """Return the oldest computed day beyond the shortest restatement window of a raw table."""
    windows = [c.restatement_window_days for c in catalogue if c.source]
    oldest = min((day for of_table in days.values() for day in of_table), default=None)
    if oldest is None or not windows or (newest - oldest).days <= min(windows):
        return None
    return oldest


def _person(name: str) -> str:
    seen = (each for each in unicodedata.normalize("NFKC", name) if not unicodedata.category(each).startswith("C"))
    return "".join("".join(seen).casefold().split())
