"""Bring every table up to date: take what was delivered, then recompute the days it reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType

from platform_assets.engine.circuits import stopped
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.mistake import MistakesError
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discarded_on_error
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, scoped_plan, still_to_do
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take, takes_deliveries
from platform_assets.engine.step.analysed import analysed
from platform_assets.engine.step.holds import BY_CODE
from platform_assets.engine.step.recompute import recompute_step
from platform_assets.engine.step.stage import Stage, try_circuits
from platform_assets.engine.step.work import LookedAt
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import AUTOMATIC, Request, wanted_days
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress, no_progress
from platform_assets.spark.session.on_demand import SparkOnDemand


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did.

    Args:
        steps: one per table with days to recompute.
        struck: days that were planned and turned out to need nothing, because what they read came out as it was.
        by_people: tables that were left alone, because one of them has to follow its contract and nobody asked.
        stopped: of each circuit that stops something of the request, why.
    """

    ingests: tuple[IngestResult, ...] = ()
    steps: tuple[StepResult, ...] = ()
    struck: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    by_people: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    stopped: tuple[str, ...] = ()

    @property
    def why_struck(self) -> str:
        """Say of struck days why, in a few words; of a held day, readers have what they had."""
        held = " or were not published" if any(step.not_published for step in self.steps) else ""
        return f"their inputs came out as they were{held}"


_TOGETHER = (
    " A refresh publishes all tables in one release, so it published no day of any. "
    "`platform-assets breaker open TABLE --reason …` leaves the table out, so that the others are published meanwhile."
)


@contextmanager
def _without_others() -> Iterator[None]:
    """Add to what is said of code that failed that other tables wait for it, and how they need not."""
    try:
        yield
    except (*BY_CODE, MistakesError) as error:
        if _TOGETHER not in error.todo:  # the analyser's are kept, and raised again
            error.todo, error.args = f"{error.todo}{_TOGETHER}", (f"{error}{_TOGETHER}",)
        raise


@_without_others()
def refresh(
    platform: Platform,
    spark: SparkOnDemand,
    author: Author,
    progress: OnProgress = no_progress,
    until: date | None = None,
    report: Callable[[IngestResult | StepResult], None] = lambda done: None,
    request: Request = AUTOMATIC,
    plan: Plan | None = None,
) -> RefreshResult:
    """Ingest everything pending, if the request takes it, and recompute exactly the stale days, in dependency order.

    Every raw table's arrivals are a publication of their own, as they come; all recomputed days are one, at the end.
    A day that turns out unchanged by the time its table is reached, because its inputs came out with the digests they
    had, is struck.

    Args:
        spark: gives the session; not called where there is nothing to do.
        until: newest arrival date to take, which bounds the run; what arrived on later dates is left for another.
        report: told what became of each table: of raw ones as soon as it is done, of the others once all are published.
        request: which tables and days, and whether those that only a person takes.
        plan: of the request, as somebody has seen it. This very plan is executed, unless raw tables took something or
            others published since: then it is made anew.

    Raises:
        ContractError: a person asks for days of a table that cannot follow its contract with them; nothing was done.
        PlatformError: a contract or a transform of a table makes no sense to Spark; nothing was done.
    """
    platform.sync()
    before = LakeSnapshot.now(platform)
    wanted = wanted_days(platform.catalogue, request, before.calendar)
    refuse_what_tables_cannot_take(before, request)
    spark = analysed(platform, [table for table, days in wanted.items() if days], spark, author.run)
    ingests: list[IngestResult] = []
    for contract in platform.catalogue:
        is_wanted = request.takes and bool(wanted.get(contract.name))
        if contract.source is None or not is_wanted or contract.name in before.stopped:
            continue
        # Nobody stands by an automatic run: files for a table that cannot take them wait, and the others are taken.
        if request.by_person or takes_deliveries(LakeSnapshot.now(platform), contract):
            ingests.append(ingest(platform, spark, contract, author, progress=progress, until=until))
            report(ingests[-1])
    try_circuits(platform, spark, [table for table, days in wanted.items() if days], author, progress)
    with staging(platform.lake) as keep:
        stage = Stage(platform, author, keep=lambda stage, publishing: keep(stage.folders))
        plan = planned(stage, request, plan)
        with discarded_on_error("What was staged", stage.discard):
            _, struck = fill(stage, plan, spark, progress, request)
            stage.publish(spark, progress)
    steps = tuple(stage.results.values())
    for done in steps:
        report(done)
    reasons = dict.fromkeys(hold.reason for table, hold in stopped(platform).items() if wanted.get(table))
    return RefreshResult(tuple(ingests), steps, struck, plan.by_people, plan, tuple(reasons))


def planned(stage: Stage, request: Request, plan: Plan | None) -> Plan:
    """Return a plan that was made on what a stage shows: the one given, if it was."""
    snapshot = stage.snapshot
    if plan is not None and plan.moment == snapshot.moment:
        return plan
    if request.keys is not None:
        return scoped_plan(snapshot, request, request.keys)
    return plan_steps(stage.platform, request, snapshot=snapshot)


def fill(
    stage: Stage,
    plan: Plan,
    spark: SparkOnDemand,
    progress: OnProgress,
    request: Request,
    looked_at: LookedAt = MappingProxyType({}),
) -> tuple[tuple[StepResult, ...], dict[str, tuple[date, ...]]]:
    """Compute into a stage what is left to do of a plan, in dependency order.

    Args:
        spark: gives the session; not called where there is nothing to do.
        looked_at: days whose settled figures a person has accepted.

    Returns:
        What became of the days of each table, and by table the days that were struck.
    """
    done: list[StepResult] = []
    struck: dict[str, tuple[date, ...]] = {}
    steps = {step.table: step for step in plan.steps}
    for table in stage.platform.catalogue.names:
        # The step says of each what keeps it.
        days = {day for day, (state, _) in plan.blocked.get(table, {}).items() if state.is_there}
        asked: list[date] = []
        if table in steps:
            left = still_to_do(stage.snapshot, steps[table], request)
            days |= set(left.days)
            asked = [day for day in left.days if "asked for" in steps[table].reasons[day]]
            if left.struck:
                struck[table] = left.struck
        if days:
            step = Step(table, tuple(sorted(days)))
            seen = looked_at.get(table, {})
            done.append(stage.step(spark, step, progress, forced=asked, looked_at=seen, scope=request.keys))
    return tuple(done), struck


def recompute(
    platform: Platform,
    spark: SparkOnDemand,
    tables: tuple[str, ...],
    days: tuple[date, ...],
    author: Author,
    progress: OnProgress = no_progress,
) -> RefreshResult:
    """Compute some days of some tables, whatever their state: raw tables ingest, the others are recomputed."""
    platform.sync()
    spark = analysed(platform, tables, spark, author.run)
    ingests: list[IngestResult] = []
    steps: list[StepResult] = []
    for contract in platform.catalogue:
        if contract.name not in tables:
            continue
        if contract.source is not None:
            ingests.append(ingest(platform, spark, contract, author, days, progress))
        else:
            steps.append(recompute_step(platform, spark, Step(contract.name, days), author, progress, force=True))
    return RefreshResult(tuple(ingests), tuple(steps))
