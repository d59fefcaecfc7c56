"""Apply a backfill: stage it step by step, check each step against its gates, publish everything at once.

Applies exactly what was explained and, where required, approved. If the process ends for any reason, the next call
continues after the last batch of days.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import OpenStage
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.operations.backfill.explain import scope_in
from platform_assets.operations.backfill.sitting import (
    Sitting,
    accepted_by_plan,
    keys_stay_apart,
    may_go_on,
    publication_by,
    refuse_overruled,
    sitting_over,
    stop_if_paused,
    why_of,
)
from platform_assets.operations.backfill.standing import cores_of, days_told, stage_of, staged_figures
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.stages import publish_stage, refresh_stage
from platform_assets.operations.stages.store import without_other_code
from platform_assets.planning.backfill.days import RolloutStep, request_for
from platform_assets.planning.backfill.pace import judged, nearly_spent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import which
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import PublicationRecord
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets.words import counted

_KEPT_EVERY_S = 1.0
"""Often enough for a person to watch the progress, and seldom enough not to wait for the disk with every batch."""
_FAILED = 10
"""Days that failed and are named."""


def _compute(sitting: Sitting, days: Mapping[str, frozenset[date]]) -> tuple[StepResult, ...]:
    """Compute days into the stage, as many at once as the file allows, or half as many as a failed job had."""
    may_go_on(sitting)
    platform, record, file = sitting.platform, sitting.record, sitting.record.file
    began = time.monotonic() - record.seconds
    bound = file.batch_days or platform.settings.batch_days
    most = min(record.pace or bound, bound)
    cut = {"batch_days": most} | ({"batch_mib": 0} if file.batch_days or record.pace else {})  # also brief ones
    bounded = replace(platform, settings=platform.settings.model_copy(update=cut))
    author = replace(sitting.author, run=record.run, why=why_of(file))
    request = request_for(file, days, scope_in(platform, file))

    def go_on(now: Progress) -> None:
        _note(sitting, began)
        sitting.progress(now)
        if wants_more(now):
            may_go_on(sitting)

    try:
        with keys_stay_apart(sitting):
            result = refresh_stage(
                bounded,
                sitting.spark,
                author,
                STAGE + file.name,
                go_on,
                request,
                looked_at=accepted_by_plan(sitting),
                is_plans=True,
            )
    except BaseException as error:
        _note(sitting, began, at_once=True)  # staged days stay
        if not isinstance(error, Exception):  # a person's Ctrl-C, or a run that was terminated
            sitting.keep(sitting.record.with_event("interrupted while it computed"))
        elif isinstance(error, DiskFullError) or not isinstance(error, PlatformError):
            _halve(sitting, min(max(map(len, days.values())), most))
        raise
    _note(sitting, began, at_once=True)
    _refuse_blocked(sitting, result.plan, days)
    return result.steps


def _refuse_blocked(sitting: Sitting, plan: Plan, days: Mapping[str, frozenset[date]]) -> None:
    """Stop if an input of a day is gone: the engine skips such days."""
    for table, of_table in plan.blocked.items():
        blocked = {day: state for day, (state, _) in of_table.items() if not state.is_there}
        if gone := sorted(blocked.keys() & days.get(table, frozenset())):
            reads = blocked[gone[0]]
            raise sitting.stop(
                f"{counted(len(gone), 'day')} of {table} cannot be computed any more ({which(gone)}): "
                f"{reads.table} on {reads.day} is not there",
                f"Deliver or compute that, `platform-assets undo backfill:{sitting.record.name} --reason …`, and apply "
                "it again; or leave these days out with `days.without`.",
            )


def _note(sitting: Sitting, began: float, *, at_once: bool = False) -> None:
    """Record the progress every second; report once that a budget is nearly used."""
    record = sitting.record.model_copy(
        update={
            "seconds": time.monotonic() - began,
            "starts": sitting.starts_before + (sitting.spark.waited > 0),
        }
    )
    if is_due := at_once or time.monotonic() - sitting.kept > _KEPT_EVERY_S:
        record = record.model_copy(update={"bytes": _staged_bytes(sitting)})
    known = {event.what for event in record.events}
    for words in nearly_spent(record.file.budget, record.seconds, record.bytes, cores_of(sitting.platform)):
        if words not in known:
            sitting.say(words)
            record, is_due = record.with_event(words, kind="nearly spent"), True
    if is_due:
        sitting.keep(record)
    else:
        sitting.record = record


def _halve(sitting: Sitting, days: int) -> None:
    """Halve the days of the next jobs, also in later sittings, after the machine failed one."""
    pace = max(days // 2, 1)
    now = counted(pace, "day")
    what = f"a job of {counted(days, 'day')} was too much at once, since it failed: {now} at most from now on"
    sitting.say(what)
    sitting.keep(sitting.record.with_event(what, pace=pace))


def wants_more(now: Progress) -> bool:
    """Return whether more days are to be computed. Finished work costs nothing, so no limit applies to it."""
    return not now.finished and not (now.total and now.done >= now.total)


def _staged_bytes(sitting: Sitting) -> int:
    stage = stage_of(sitting.platform, sitting.record.name)
    changes = stage.staged.tables.values() if stage else ()
    return sum(content.bytes for change in changes for content in change.days.values())


def stage_rollout(sitting: Sitting) -> None:
    """Stage a backfill step by step, and check each step against its gates before the next begins."""
    record = sitting.record
    if record.state == "published" or (record.state == "publishing" and publication_by(sitting.platform, record)):
        return
    refuse_overruled(sitting)
    if record.done:
        sitting.report(f"Goes on after {record.steps[record.done - 1].share} %.")
    known = set[tuple[str, date]]()
    for number, step in enumerate(record.steps, 1):
        # Days that passed may be gone: people, erasures and restores from a backup drop stages.
        computed = _stage(sitting, step)
        known.update((one.table, day) for one in computed for day in one.published)
        known = _still_there(sitting, known)
        if computed or number > record.done:
            _judge(sitting, step.share)
        if number > record.done:
            sitting.keep(
                sitting.record.with_event(f"{step.share} % staged, gates passed", done=number, state="staging")
            )
            failpoint("plan.step_done")
    stop_if_paused(sitting)


def _there(sitting: Sitting) -> dict[str, tuple[date, ...]]:
    """Return the staged days that stay, by table."""
    staged = stage_of(sitting.platform, sitting.record.name)
    return without_other_code(sitting.platform, staged).staged.days if staged else {}


def _still_there(sitting: Sitting, known: set[tuple[str, date]]) -> set[tuple[str, date]]:
    """Return all staged days; refuse if days of earlier steps are gone, because this sitting would omit them."""
    there = {(table, day) for table, days in _there(sitting).items() for day in days}
    if gone := sorted(known - there):
        table, day = gone[0]
        raise sitting.stop(
            f"{counted(len(gone), 'day')} that it had staged are gone, first {table} {day}: its stage was dropped "
            "while it was applied",
            "Apply it again to compute them again; to give it up, `platform-assets undo "
            f"backfill:{sitting.record.name}`.",
        )
    return there


def _stage(sitting: Sitting, step: RolloutStep) -> tuple[StepResult, ...]:
    """Compute the unstaged days of a step and return the new record."""
    there = _there(sitting)
    every = {table: frozenset(days).difference(there.get(table, ())) for table, days in step.days.items()}
    left = {table: days for table, days in every.items() if days}
    if not left:
        return ()
    done = _compute(sitting, left)
    failpoint("plan.staged")
    failed: dict[str, dict[date, str]] = {}
    for one in done:
        failed.setdefault(one.table, {}).update(one.not_published)
    if moved := _settled(sitting, done):
        as_it_is = sitting.record.hash
        settled = {table: {**sitting.record.settled.get(table, {}), **days} for table, days in moved.items()}
        update = {"settled": {**sitting.record.settled, **settled}, "settled_at": datetime.now(UTC)}
        sitting.keep(sitting.record.model_copy(update=update))
        raise sitting.stop(
            f"settled figures move at {step.share} %, and hash {as_it_is} was not approved since they were found",
            f"Ask another person to run `platform-assets backfill approve FILE --hash {as_it_is} --reason … --by "
            "…`; then "
            "apply it again.",
            _lines(failed),
        )
    _refuse_failed(sitting, failed, step.share)
    return done


def _settled(sitting: Sitting, done: Iterable[StepResult]) -> dict[str, dict[date, str]]:
    """Return days held for settled figures, by table, each with its fingerprint."""
    stage = stage_of(sitting.platform, sitting.record.name)
    made_from = {
        (hold.table, hold.day): hold.refused.fingerprint
        for hold in (stage.staged.holds if stage else ())
        if isinstance(hold.refused, Attempt)
    }
    found = {
        one.table: {
            day: made_from[one.table, day]
            for day, findings in one.held.items()
            if (one.table, day) in made_from and any(finding.check == "settled" for finding in findings)
        }
        for one in done
    }
    return {table: days for table, days in found.items() if days}


def _refuse_failed(sitting: Sitting, failed: Mapping[str, Mapping[date, str]], share: int) -> None:
    """Stop if days did not pass the gates of their contract: a plan is published whole."""
    if lines := _lines(failed):
        raise sitting.stop(
            f"{counted(sum(map(len, failed.values())), 'day')} did not pass the gates of their contract at {share} %",
            "Correct the code and apply the plan again. What it reads is as it was when it began: after other data, "
            f"`platform-assets undo backfill:{sitting.record.name} --reason …` first.",
            lines,
        )


def _lines(failed: Mapping[str, Mapping[date, str]]) -> list[str]:
    """Return the first failed days, each with its reason."""
    return [f"{table} {day}: {why}" for table, days in failed.items() for day, why in sorted(days.items())][:_FAILED]


def _judge(sitting: Sitting, share: int, stage: OpenStage | None = None) -> None:
    """Check all staged days against the gates of the file."""
    file = sitting.record.file
    stage = stage or stage_of(sitting.platform, file.name)
    if stage is None or not file.gates:
        return
    figures = staged_figures(sitting.platform, stage, file.name, file.gates, sitting.progress)
    verdicts = judged(file.gates, figures)
    for verdict in verdicts:
        sitting.report(f"{share} %: {verdict.sentence}: {'passed' if verdict.passed else 'failed'}.")
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:  # the first of them begins the message
        raise sitting.stop(
            f"at {share} % {counted(len(failed), 'gate')} of the plan failed: {failed[0].sentence}",
            f"Look at `platform-assets diff stage:{STAGE}{file.name}`. Correct the code or the tolerance and apply "
            "the plan again; what it reads is as it was when it began, so after other data, or to give it up, "
            f"`platform-assets undo backfill:{file.name} --reason …`. Readers see nothing of it.",
            [line for verdict in failed for line in (verdict.sentence, *verdict.worst)][1:],
        )


def publish(sitting: Sitting) -> None:
    """Publish everything in one release; use an earlier publication of the plan if its process died after it.

    First recomputes days whose inputs other publications changed. The plan's gates judge these days again.
    """
    platform, file = sitting.platform, sitting.record.file
    if sitting.record.state == "published":
        return
    stage = STAGE + file.name

    def look(now: OpenStage, failed: Mapping[str, Mapping[date, str]]) -> None:
        what = _overtaken(platform, opened, now) if opened else ""
        if what and what not in {event.what for event in sitting.record.events}:  # however often it is tried
            sitting.say(what)
            sitting.keep(sitting.record.with_event(what))
        refuse_overruled(sitting)  # days may have been rolled back during the recomputation
        _refuse_failed(sitting, failed, 100)
        _judge(sitting, 100, now)

    def go_on(now: Progress) -> None:
        sitting.progress(now)
        if now.phase == "computing" and not now.finished:
            may_go_on(sitting)  # what others overtook is computed within its hours and its budget, as all of it

    if sitting.record.state != "publishing":
        sitting.keep(sitting.record.with_event("publishing", state="publishing"))
    failpoint("plan.publishing")
    opened = stage_of(platform, file.name)
    if opened and (opened.staged.days or opened.staged.holds):
        if publication_by(platform, sitting.record) is None:
            _refuse_strangers(sitting, opened)
            refuse_overruled(sitting)
        author = replace(sitting.author, run=sitting.record.run, why=why_of(file))
        allowed = file.override_protected.named_days() if file.override_protected else frozenset()
        with keys_stay_apart(sitting):
            publish_stage(platform, sitting.spark, author, stage, go_on, look, allowed)
    failpoint("plan.published")
    newest = publication_by(platform, sitting.record)
    if newest is None:
        sitting.record = sitting.record.model_copy(update={"done": 0})
        raise sitting.stop(
            "no good day changed, so there is nothing to publish",
            f"Apply it again to compute it again, or `platform-assets undo backfill:{file.name} --reason …`.",
        )
    sitting.keep(as_published(platform, sitting.record, newest))
    sitting.say(sitting.record.events[-1].what)


def as_published(platform: Platform, record: BackfillRecord, newest: PublicationRecord) -> BackfillRecord:
    """Return the record of a published backfill."""
    published = platform.ledger.publication(newest.publication)
    days = {(day.table, day.day) for day in published.days} if published else set()
    record = record.model_copy(
        update={
            "release": newest.release,
            "publication": newest.publication,
            "published_days": len(days & record.planned),
        }
    )
    return record.with_event(
        f"published in release {newest.release}: {days_told(record)}", kind="published", state="published"
    )


def _refuse_strangers(sitting: Sitting, stage: OpenStage) -> None:
    """Refuse days that another person put into the stage: they were not explained, and no gate judged them."""
    names = sitting.platform.catalogue.names
    strange = [(table, day) for table, days in stage.staged.days.items() if table in names for day in days]
    strange = sorted(set(strange) - sitting.record.planned)
    if strange:
        table, day = strange[0]
        raise sitting.stop(
            f"its stage holds {counted(len(strange), 'day')} outside the plan, first {table} {day}: they were computed "
            "there by hand",
            f"`platform-assets undo backfill:{sitting.record.name} --reason …`, and apply it again.",
        )


def _overtaken(platform: Platform, before: OpenStage, now: OpenStage) -> str:
    """Return days computed again because others published since they were staged; empty for none."""
    again: dict[str, set[date]] = {}
    for table in platform.catalogue.names:
        was, becomes = before.staged.of(table), now.staged.of(table)
        if days_of := {day for day in was.keys() | becomes.keys() if was.get(day) != becomes.get(day)}:
            again[table] = days_of
    if not again:
        return ""
    days = sum(map(len, again.values()))
    tables = "; ".join(f"{table} {which(sorted(of_table))}" for table, of_table in again.items())
    staged = f"overtaken since {'it was' if days == 1 else 'they were'} staged"
    return f"computed {counted(days, 'day')} again, {staged}: {tables}"


def apply(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    report: Callable[[str], None] = lambda sentence: None,
    place: Path | None = None,
) -> BackfillRecord:
    """Stage the days of a plan step by step, check each step against its gates, and publish all in one release.

    Returns:
        What became of it: published. One that was published before and not proved yet, as its file asks for, is just
        given back.

    Raises:
        BackfillError: an obstacle, a missing approval, or it was applied before.
        StoppedError: a gate failed, the budget is used up, or a person paused it; the next call continues.
        LockTimeoutError: another process applies it.
    """
    with sitting_over(platform, spark, file, author, progress, report, place) as sitting:
        stage_rollout(sitting)
        publish(sitting)
    return sitting.record
