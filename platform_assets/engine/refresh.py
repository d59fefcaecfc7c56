"""Bring every table up to date: ingest deliveries, then recompute the days that they reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

from platform_assets.engine.catalogue import MistakesError
from platform_assets.engine.circuits import CircuitOpenError, in_order, stopped
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.moves import moved_meanwhile
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, discarded_on_error, publish_rest, replaced
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, refuse_protected_days, scoped_plan, still_to_do
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take, takes_deliveries
from platform_assets.engine.step.analysis import analysed
from platform_assets.engine.step.compute import Computed, compute
from platform_assets.engine.step.holds import (
    BY_CODE,
    DeletedMeanwhileError,
    announced_settled,
    deletion_explained,
    refused_before,
    write_holds,
)
from platform_assets.engine.step.stage import Stage, try_circuits
from platform_assets.engine.step.work import LookedAt, Work, begin
from platform_assets.lakehouse.errors import Conflict
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import AUTOMATIC, Request, wanted_days
from platform_assets.planning.steps import Step, days_of, put_off
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.quality.findings import Check
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained

ATTEMPTS = 3
"""How often days that another run published in between are computed again before the conflict is raised."""


def recompute_step(
    platform: Platform,
    spark: SparkOnDemand,
    step: Step,
    author: Author,
    progress: OnProgress = no_progress,
    *,
    force: bool = False,
    accept: Collection[Check] = (),
    looked_at: Mapping[date, str] | None = None,
) -> StepResult:
    """Recompute days of one silver or gold table, in batches. Each batch is one publication.

    Days that fail a gate are held and keep their last good content; days with an input that was never loaded, or is
    held on the same day, are blocked; days that are up to date, or would be refused again with the same content, are
    skipped. None of them keeps the others from being published.

    Args:
        accept: checks, of `ACCEPTABLE`, whose findings a person accepts: they are shown, and hold no day. Their number
            is published with the day, as `accepted_<check>`.
        looked_at: fingerprints of the days that the person looked at; by default their present ones. A day with another
            fingerprint by then is judged as if nothing had been accepted.

    Raises:
        AcceptError: a check is not among those that can be accepted.
        ContractError: the table can follow its contract only with all its days at once, or an input cannot yet.
        ProtectedDaysError: days are protected, and their data has not changed.
        TransformError: the transform does not return what the contract declares.
        UndeclaredReadError: the transform read something that its contract does not declare.
        NotRepeatableError: the transform does not always give the same result.
        Conflict: others kept publishing the same days.
        DeletedMeanwhileError: erasures kept deleting files that were read.
        OvertakenError: others kept publishing, or did while records moved between days.
    """
    now = Progress("computing", step.table, 0, len(step.days))
    progress(now)
    forced = step.days if force else ()
    author = replace(author, decides="acceptance") if accept else author
    try_circuits(platform, spark, [step.table], author, progress)
    snapshot = LakeSnapshot.now(platform)
    refuse_protected_days(snapshot, platform.catalogue[step.table], step.days, forced=force)
    work = begin(snapshot, spark, step, author, forced=forced, accept=accept, looked_at=looked_at, at_once=False)
    result = StepResult(step.table)
    left = list(work.batches)
    while left:
        started, batch = time.monotonic(), left.pop(0)
        now = replace(now, batch=len(batch))
        progress(now)
        days: Collection[date] = batch
        for turn in range(1, ATTEMPTS + 1):
            try:
                with full_disk_explained(step.table), announced_settled(platform):
                    done, days = _publish_batch(work, days, days_of(left), result, last=turn == ATTEMPTS)
            except DeletedMeanwhileError:
                if turn == ATTEMPTS:
                    raise
                continue
            result, left = result + done.result, put_off(left, done.put_off)
            work = replace(work, engine=done.engine)
            if not days:
                break
        result += StepResult(step.table, seconds=time.monotonic() - started)
        now = replace(now, done=result.days, rows=result.rows)
        progress(now)
    progress(replace(now, finished=True))
    return replace(result, reasons={day: work.reasons[day] for day in result.published if day in work.reasons})


def _publish_batch(
    work: Work, days: Collection[date], to_come: Collection[date], so_far: StepResult, *, last: bool
) -> tuple[Computed, tuple[date, ...]]:
    """Compute and publish a batch; return its result, and the days to compute again because of a conflict."""
    table, snapshot = work.contract.name, LakeSnapshot.now(work.platform)
    with deletion_explained(snapshot, table):
        computed = compute(work, snapshot, days, to_come, so_far)
    try:
        met = _publish(work, computed, snapshot, last=last) if computed.publication else _Met()
    except (CircuitOpenError, Conflict):
        if computed.holds:  # which count, though the good days cannot be published
            with in_order(work.platform):
                work.platform.ledger.verdicts.refuse(computed.holds)
        raise
    good = computed.result.published.keys() - met.again - met.put_back.keys()
    over = [hold for hold in computed.over if hold.day in good]
    overtaken = write_holds(snapshot, computed.holds, {table: good}, over)
    again = met.again | (set() if last else {hold.day for hold in overtaken})
    put_back = StepResult(table, held={day: (refused_before(hold),) for day, hold in met.put_back.items()})
    result = computed.result.without(again | put_back.held.keys()) + put_back
    return replace(computed, result=result), tuple(sorted(again))


class _Met(NamedTuple):
    """Days of a batch that were not published: those to compute again, and those rolled back meanwhile."""

    again: frozenset[date] = frozenset()
    put_back: Mapping[date, Hold] = MappingProxyType({})


def _publish(work: Work, computed: Computed, snapshot: LakeSnapshot, *, last: bool) -> _Met:
    """Publish a batch over the release that it read, or over a later one if it is valid there.

    Half of a move must not be seen: days published meanwhile may be the other half, or have undone it. Nor a day rolled
    back meanwhile, although the files that this batch read are then current again. All other work does not affect the
    days that it did not replace.
    """
    platform, again, put_back = work.platform, set[date](), dict[date, Hold]()

    def rest(met: Met, changes: Sequence[TableChange]) -> Rest:
        now = LakeSnapshot.now(platform)
        put_back.update(_put_back(now, changes[0], computed.over))
        half = computed.moves or moved_meanwhile(work.contract, changes[0].days, snapshot, now)
        if last and (half or isinstance(met, Conflict)):
            raise met
        again.update(changes[0].days if half else replaced(met).left_out)
        if not last:  # of what came out equal, others left the files as they were
            again.update(now.published_since(snapshot, work.contract.name, changes[0].days))
        return Rest(again | put_back.keys(), now.number)

    publish_rest(
        platform, computed.publication, "recompute", computed.changes, work.author, rest, on_release=snapshot.number
    )
    return _Met(frozenset(again - put_back.keys()), put_back)


def _put_back(now: LakeSnapshot, change: TableChange, known: Collection[Hold]) -> dict[date, Hold]:
    """Return days that would get exactly the content that was rolled back since they were computed."""
    return {
        hold.day: hold
        for hold in now.holds_of(change.table)
        if hold.is_of_good_content
        and hold not in known
        and hold.day in change.days
        and hold.refuses(change.days[hold.day].fingerprint)
    }


@dataclass(frozen=True)
class RefreshResult:
    """Result of a refresh.

    Args:
        steps: one per table with days to recompute.
        struck: planned days that were skipped because their inputs came out unchanged.
        by_people: tables that were left alone, because one of them must follow its contract and was not requested.
        stopped: reason of each circuit that stops part of the request.
    """

    ingests: tuple[IngestResult, ...] = ()
    steps: tuple[StepResult, ...] = ()
    struck: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    by_people: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    stopped: tuple[str, ...] = ()

    @property
    def why_struck(self) -> str:
        """Return in a few words why days were struck; for a held day, that readers keep what they had."""
        held = " or were not published" if any(step.not_published for step in self.steps) else ""
        return f"their inputs came out unchanged{held}"


_TOGETHER = (
    " A refresh publishes all tables in one release, so it published none. "
    "`platform-assets admin breaker TABLE --open --reason …` leaves the table out, so that the others are published."
)


@contextmanager
def _without_others() -> Iterator[None]:
    """Add to an error of user code that other tables wait for it, and how to leave the table out."""
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
    """Ingest everything pending, if the request includes it, and recompute exactly the stale days, in dependency order.

    Each raw table's arrivals are a publication of their own; all recomputed days are one, at the end. A day is struck
    if its inputs have come out with the same digests by the time its table is reached.

    Args:
        until: newest arrival date to ingest, which bounds the run; later arrivals are left for another.
        report: called with the result of each table: a raw one once it is done, the others once all are published.
        request: tables and days, and whether days that wait for a person are included.
        plan: plan of the request, as a person has seen it. It is executed unless raw tables ingested something or
            others published since: then it is made again.

    Raises:
        ContractError: a person requests days of a table that cannot follow its contract with them; nothing was done.
        PlatformError: Spark refuses a contract or a transform of a table; nothing was done.
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
        # No person watches an automatic run: files for a table that cannot take them wait, and the others are taken.
        if request.by_person or takes_deliveries(LakeSnapshot.now(platform), contract):
            ingests.append(ingest(platform, spark, contract, author, progress=progress, until=until))
            report(ingests[-1])
    try_circuits(platform, spark, [table for table, days in wanted.items() if days], author, progress)
    with staging(platform.lake) as keep:
        stage = Stage(platform, author, keep=lambda stage, publishing: keep(stage.folders))
        plan = planned(stage, request, plan)
        with (
            announced_settled(platform, lambda: stage.staged.holds),
            discarded_on_error("What was staged", stage.discard),
        ):
            _, struck = fill(stage, plan, spark, progress, request)
            stage.publish(spark, progress)
    steps = tuple(stage.results.values())
    for done in steps:
        report(done)
    reasons = dict.fromkeys(hold.reason for table, hold in stopped(platform).items() if wanted.get(table))
    return RefreshResult(tuple(ingests), steps, struck, plan.by_people, plan, tuple(reasons))


def planned(stage: Stage, request: Request, plan: Plan | None) -> Plan:
    """Return the plan for a stage's present state: the given one, if it still fits."""
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
    """Compute the rest of a plan into a stage, in dependency order.

    Args:
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
