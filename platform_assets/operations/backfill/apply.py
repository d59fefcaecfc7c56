"""Apply a backfill: stage it step by step, hold each against the gates, publish all of it at once, prove it.

What is applied is what was explained and, where that is asked for, approved. Whatever ends the process, the next call
goes on after the last batch of days.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.operations.backfill.explain import cores_of, explain
from platform_assets.operations.backfill.record import (
    OVER,
    STAGE,
    BackfillRecord,
    RecordedStep,
    find_record,
    is_paused,
    write_record,
)
from platform_assets.operations.stages.compare import compare
from platform_assets.operations.stages.inspect import without_other_code
from platform_assets.operations.stages.stages import publish_stage, refresh_stage
from platform_assets.operations.stages.store import read_stage, stage_names
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.pace import may_compute, spent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.verdicts import Figures, judged
from platform_assets.planning.selection import Request, Selection
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.history import PublicationRecord
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.words import counted


class BackfillError(PlatformError):
    """A backfill cannot begin, or not go on."""


class StoppedError(BackfillError):
    """A backfill stands still: what is staged stays, readers see nothing of it, and it can be gone on with."""


@dataclass
class _Sitting:
    """One call of `apply`, from its start until it ends or is ended."""

    platform: Platform
    spark: SparkOnDemand
    author: Author
    record: BackfillRecord
    progress: OnProgress

    def keep(self, record: BackfillRecord) -> None:
        """Write down where it stands."""
        self.record = record
        write_record(self.platform.lake, record)

    def stop(self, what: str, todo: str, lines: Sequence[str] = (), state: str = "stopped") -> StoppedError:
        """Write down why it stands still."""
        self.keep(self.record.told(what, state=state))
        return StoppedError(f"The plan {self.record.name} stopped: {what}", todo, lines)


def apply(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    report: Callable[[str], None] = lambda sentence: None,
) -> BackfillRecord:
    """Stage what a plan comes to, step by step and each held against its gates, and publish it in one release.

    Args:
        platform: as it is now.
        spark: gives the session; not called where there is nothing to compute.
        file: the plan.
        author: who applies it.
        progress: told after every batch.
        report: told what happened, in sentences.

    Returns:
        What became of it: published.

    Raises:
        BackfillError: something is in the way, an approval is missing, or it was applied before.
        StoppedError: a gate failed, the budget is used up, or somebody paused it; the next call goes on.
        LockTimeoutError: somebody else applies it.
    """
    platform.sync()
    with plan_lock(platform.lake, file.name):
        record = _begun(platform, file, author)
        sitting = _Sitting(platform, spark, author, record, progress)
        if record.state != "publishing":
            if record.done:
                report(f"Goes on after {record.steps[record.done - 1].share} %.")
            for number, step in enumerate(record.steps[record.done :], record.done + 1):
                _stage(sitting, step)
                _judge(sitting, step, report)
                sitting.keep(sitting.record.told(f"{step.share} % staged, gates passed", done=number, state="staging"))
                failpoint("plan.step_done")
            _stop_if_paused(sitting)
        _publish(sitting)
        report(f"Published in release {sitting.record.release}.")
    return sitting.record


def _begun(platform: Platform, file: PlanFile, author: Author) -> BackfillRecord:
    """The record to go on with: of this very plan as it was begun, or a new one."""
    before = find_record(platform.lake, file.name)
    if before and before.state in OVER and before.state != "cancelled":
        raise BackfillError(
            f"The plan {file.name} was applied before: {before.state}"
            + (f" in release {before.release}." if before.release is not None else "."),
            "Give another plan another name.",
        )
    if before and before.state != "cancelled":
        if before.file == file and before.versions_hold(platform.versions):
            return before
        if before.state == "publishing" and publication_by(platform, before):
            return before
    backfill = explain(platform, file)
    _refuse(backfill)
    record = BackfillRecord.new(backfill)
    if before:
        record = record.model_copy(update={"events": before.events, "seconds": before.seconds})
    record = record.told(f"begun{' anew' if before else ''} as {record.hash}", author.who)
    write_record(platform.lake, record)
    return record


def _refuse(backfill: Backfill) -> None:
    name = backfill.file.name
    if backfill.blocking:
        first, *more = backfill.blocking
        raise BackfillError(f"The plan {name} cannot begin: {first.what}", first.todo, [one.what for one in more])
    if not backfill.consent.is_there:
        raise BackfillError(
            f"The plan {name} needs {counted(backfill.consent.needed, 'approval')} of {backfill.hash} and has "
            f"{len(backfill.consent.given)}, because {' and '.join(backfill.consent.because)}.",
            f"Ask somebody to run `platform-assets plan approve FILE --hash {backfill.hash} --reason … --by …`.",
        )


def _stage(sitting: _Sitting, step: RecordedStep) -> None:
    """Compute what of a step is not staged yet."""
    platform, file = sitting.platform, sitting.record.file
    staged = _staged(platform, file.name)
    there = without_other_code(platform, staged).staged.days if staged else {}
    left = {table: frozenset(days).difference(there.get(table, ())) for table, days in step.days.items()}
    by_table = {table: days for table, days in left.items() if days}
    _may_go_on(sitting)
    if not by_table:
        return
    began, seconds = time.monotonic(), sitting.record.seconds

    def told(now: Progress) -> None:
        sitting.progress(now)
        sitting.record = sitting.record.model_copy(update={"seconds": seconds + time.monotonic() - began})
        if not now.finished:
            _may_go_on(sitting)

    request = Request(frozenset(file.tables), by_person=True, force=file.policy == "recompute", by_table=by_table)
    settings = platform.settings
    if file.batch_days is not None:
        settings = settings.model_copy(update={"batch_days": file.batch_days})
    author = replace(sitting.author, run=sitting.record.run, why=_why(file))
    result = refresh_stage(
        replace(platform, settings=settings), sitting.spark, author, STAGE + file.name, told, request
    )
    now_staged = _staged(platform, file.name)
    size = sum(
        content.bytes
        for change in (now_staged.staged.tables.values() if now_staged else ())
        for content in change.days.values()
    )
    sitting.keep(sitting.record.model_copy(update={"seconds": seconds + time.monotonic() - began, "bytes": size}))
    failpoint("plan.staged")
    refused = {done.table: done.not_published for done in result.steps if done.not_published}
    if refused:
        lines = [f"{table} {day}: {why}" for table, days in refused.items() for day, why in sorted(days.items())]
        raise sitting.stop(
            f"{counted(len(lines), 'day')} did not pass the gates of their contract at {step.share} %",
            "Mend the code and apply the plan again. What it reads is as it was when it began: after other data, "
            f"`platform-assets plan cancel {file.name}` first.",
            lines[:10],
        )


def _stop_if_paused(sitting: _Sitting) -> None:
    name = sitting.record.name
    if is_paused(sitting.platform.lake, name):
        todo = f"`platform-assets plan resume {name}`, then apply it again."
        raise sitting.stop("somebody paused it", todo, state="paused")


def _may_go_on(sitting: _Sitting) -> None:
    file, record = sitting.record.file, sitting.record
    _stop_if_paused(sitting)
    if not may_compute(file.service, datetime.now(UTC)):
        raise sitting.stop(
            f"it may only compute within {file.service.hours} UTC", "Apply it again then.", state="paused"
        )
    if used := spent(file.budget, record.seconds, record.bytes, cores_of(sitting.platform)):
        raise sitting.stop(
            used, "Raise the budget in the file, have that approved where it is asked for, and apply it again."
        )


def _judge(sitting: _Sitting, step: RecordedStep, report: Callable[[str], None]) -> None:
    """Hold all that is staged so far against the gates of the file."""
    file = sitting.record.file
    stage = _staged(sitting.platform, file.name)
    if stage is None or not file.gates:
        return
    only = Selection(frozenset(gate.table for gate in file.gates))
    figures = [
        Figures(day.table, day.day, day.rows, day.keys or day.rows, dict(day.sums))
        for day in compare(sitting.platform, stage, only, sitting.progress)
    ]
    verdicts = judged(file.gates, figures)
    for verdict in verdicts:
        report(f"{step.share} %: {verdict.sentence}: {'passed' if verdict.passed else 'failed'}.")
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        raise sitting.stop(
            f"at {step.share} % {counted(len(failed), 'gate')} of the plan failed: {failed[0].sentence}",
            f"Look with `platform-assets stage compare {STAGE}{file.name}`. Mend the code or the tolerance and apply "
            "the plan again; what it reads is as it was when it began, so after other data, or to give it up, "
            f"`platform-assets plan cancel {file.name}`. Readers see nothing of it.",
            [line for verdict in failed for line in (verdict.sentence, *verdict.worst)],
        )


def _publish(sitting: _Sitting) -> None:
    """Show everything in one release; whoever died in between finds what the dead one published."""
    platform, file = sitting.platform, sitting.record.file
    stage = STAGE + file.name
    if sitting.record.state != "publishing":
        sitting.keep(sitting.record.told("publishing", state="publishing"))
    failpoint("plan.publishing")
    if opened := _staged(platform, file.name):
        _refuse_strangers(sitting, opened)
        author = replace(sitting.author, run=sitting.record.run, why=_why(file))
        publish_stage(platform, sitting.spark, author, stage, sitting.progress)
    failpoint("plan.published")
    newest = publication_by(platform, sitting.record)
    if newest is None:
        sitting.record = sitting.record.model_copy(update={"done": 0})
        raise sitting.stop(
            "no day came out another one and good, so there is nothing to publish",
            f"Apply it again to compute it anew, or `platform-assets plan cancel {file.name}`.",
        )
    sitting.keep(
        sitting.record.told(
            f"published in release {newest.release}",
            state="published",
            release=newest.release,
            publication=newest.publication,
        )
    )


def publication_by(platform: Platform, record: BackfillRecord) -> PublicationRecord | None:
    """The publication that a backfill made, also where whoever made it died before it could say so."""
    platform.settle()
    published = [head for head in platform.ledger.heads("recompute") if head.run == record.run]
    return max(published, key=lambda head: head.release, default=None)


def _refuse_strangers(sitting: _Sitting, stage: OpenStage) -> None:
    """Days that somebody else staged there were never explained, nor looked at by the gates."""
    planned = {(table, day) for step in sitting.record.steps for table, days in step.days.items() for day in days}
    names = sitting.platform.catalogue.names
    strange = [(table, day) for table, days in stage.staged.days.items() if table in names for day in days]
    strange = sorted(set(strange) - planned)
    if strange:
        table, day = strange[0]
        raise sitting.stop(
            f"its stage holds {counted(len(strange), 'day')} that it does not come to, first {table} {day}: somebody "
            "computed them there",
            f"`platform-assets plan cancel {sitting.record.name}`, and apply it again.",
        )


def _staged(platform: Platform, name: str) -> OpenStage | None:
    stage = STAGE + name
    return read_stage(platform.lake, stage) if stage in stage_names(platform.lake) else None


def _why(file: PlanFile) -> str:
    return f"plan {file.name}: {file.reason}"
