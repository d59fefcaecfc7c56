"""Recompute days of a silver or gold table and publish every batch as it is done."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

from platform_assets.engine.moves.ties import moved_meanwhile
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, publish_rest, replaced
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import refuse_protected_days
from platform_assets.engine.step.compute import Computed, compute
from platform_assets.engine.step.holds import DeletedMeanwhileError, deletion_explained, refused_before, write_holds
from platform_assets.engine.step.stage import try_circuits
from platform_assets.engine.step.work import Work, begin
from platform_assets.lakehouse.errors import Conflict
from platform_assets.planning.steps import Step, days_of, put_off
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.quality.findings import Check
from platform_assets.records.code_version import EngineName
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained

ATTEMPTS = 3
"""How often days that another run published meanwhile are computed again before the conflict is passed on."""


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
    """Recompute days of one silver or gold table, in batches of which each is one publication.

    Days that fail a gate are held and keep their last good content; days whose inputs were never loaded, or are held
    on the same day, are blocked; days that are what they would become, or would come out as they were refused, are
    left alone. None of them keeps the others from being published.

    Args:
        spark: gives the session; not called where nothing is to be computed, or no input day has rows.
        accept: checks, of `ACCEPTABLE`, whose findings a person has looked at and found to be true: they are shown,
            and keep no day from being published. Their number is published with the day, as `accepted_<check>`.
        looked_at: the fingerprints of the days that the person looked at; by default those that they would get now. A
            day that becomes something else by then is judged as if nothing had been accepted.

    Raises:
        AcceptError: a check is none of those that can be accepted.
        ContractError: the table can follow its contract only with all its days at once, or an input has yet to.
        ProtectedDaysError: days are protected, and no data of theirs asks for them.
        TransformError: the transform does not return what the contract declares.
        UndeclaredReadError: the transform read something that its contract does not declare.
        NotRepeatableError: the transform does not always give the same.
        Conflict: others kept publishing the same days.
        DeletedMeanwhileError: erasures kept deleting what was read.
        OvertakenError: others kept publishing, or did while records moved between days.
    """
    now = Progress("computing", step.table, 0, len(step.days))
    progress(now)
    forced = step.days if force else ()
    author = replace(author, decides="acceptance") if accept else author
    try_circuits(platform, spark, [step.table], author, progress)
    snapshot = LakeSnapshot.now(platform)
    refuse_protected_days(snapshot, platform.catalogue[step.table], step.days, forced=force)
    work = begin(snapshot, spark, step, author, forced=forced, accept=accept, at_once=False)
    if looked_at is not None:
        work = replace(work, looked_at=looked_at)
    result = StepResult(step.table)
    left = list(work.batches)
    while left:
        started, batch = time.monotonic(), left.pop(0)
        now = replace(now, batch=len(batch))
        progress(now)
        days: Collection[date] = batch
        for turn in range(1, ATTEMPTS + 1):
            try:
                with full_disk_explained(step.table):
                    done = _publish_batch(work, days, days_of(left), result, last=turn == ATTEMPTS)
            except DeletedMeanwhileError:
                if turn == ATTEMPTS:
                    raise
                continue
            result, days, left = result + done.result, done.again, put_off(left, done.put_off)
            work = replace(work, engine=done.engine)
            if not days:
                break
        result += StepResult(step.table, seconds=time.monotonic() - started)
        now = replace(now, done=result.days, rows=result.rows)
        progress(now)
    progress(replace(now, finished=True))
    return replace(result, reasons={day: work.reasons[day] for day in result.published if day in work.reasons})


class _Done(NamedTuple):
    """What became of a batch: the days to compute again because of a conflict, those to compute later, and by what."""

    result: StepResult
    again: tuple[date, ...]
    put_off: Mapping[date, date]
    engine: EngineName


def _publish_batch(
    work: Work, days: Collection[date], to_come: Collection[date], so_far: StepResult, *, last: bool
) -> _Done:
    table, snapshot = work.contract.name, LakeSnapshot.now(work.platform)
    with deletion_explained(snapshot, table):
        computed = compute(work, snapshot, days, to_come, so_far)
    met = _publish(work, computed, snapshot, last=last) if computed.publication else _Met()
    good = computed.result.published.keys() - met.again - met.put_back.keys()
    over = [hold for hold in computed.over if hold.day in good]
    overtaken = write_holds(snapshot, computed.holds, {table: good}, over)
    again = met.again | (set() if last else {hold.day for hold in overtaken})
    put_back = StepResult(table, held={day: (refused_before(hold),) for day, hold in met.put_back.items()})
    result = computed.result.without(again | put_back.held.keys()) + put_back
    return _Done(result, tuple(sorted(again)), computed.put_off, computed.engine)


class _Met(NamedTuple):
    """Days of a batch that were not published: those to compute again, and those that somebody put back meanwhile."""

    again: frozenset[date] = frozenset()
    put_back: Mapping[date, Hold] = MappingProxyType({})


def _publish(work: Work, computed: Computed, snapshot: LakeSnapshot, *, last: bool) -> _Met:
    """Publish a batch on the release that it was computed over, or on a later one if it is as good there.

    Half of a move must not be seen: what others published meanwhile may be the other half, or have undone it. Nor what
    somebody put back meanwhile: the files that this batch found are there again then, as if nothing had been. Whatever
    else others did leaves the days that they did not replace as good as they were.
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
    """Days that are to become just what somebody rolled back since they were computed."""
    return {
        hold.day: hold
        for hold in now.holds_of(change.table)
        if hold.is_of_good_content
        and hold not in known
        and hold.day in change.days
        and hold.refuses(change.days[hold.day].fingerprint)
    }
