"""One sitting of a backfill: from its start, or from where the last one ended, until it ends or is ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.locks import begin_lock, plan_lock
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import PlacedError, refuse_namesake
from platform_assets.operations.backfill.obstacles import applied_before
from platform_assets.operations.backfill.staged import cores_of, stage_of
from platform_assets.operations.backfill.waiting import overruled
from platform_assets.operations.plan_record import (
    STAGE,
    BackfillRecord,
    find_record,
    forget_pause,
    is_paused,
    write_record,
)
from platform_assets.operations.stages.stages import drop_stage, narrow_stage
from platform_assets.planning.backfill.backfill import Backfill, Obstacle, approved_by
from platform_assets.planning.backfill.pace import may_compute, seconds_left, spent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.key_scope import ScopeError
from platform_assets.progress import OnProgress, no_progress
from platform_assets.quality.findings import Check
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import PublicationRecord
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.words import counted


class BackfillError(PlatformError):
    """A backfill cannot begin, or not go on."""


class ObstructedError(BackfillError, PlacedError):
    """Something is in the way."""

    def __init__(self, name: str, obstacles: Sequence[Obstacle]) -> None:
        first, *more = obstacles
        super().__init__(f"The plan {name} cannot begin: {first.told}", first.todo, [one.told for one in more])
        self.field = first.field


class StoppedError(BackfillError):
    """A backfill stands still: what is staged stays, readers see nothing of it, and it can be gone on with."""


@dataclass
class Sitting:
    """What works on a backfill, and how far it is.

    Args:
        platform: as it was at the start.
    """

    platform: Platform
    spark: SparkOnDemand
    author: Author
    record: BackfillRecord
    progress: OnProgress

    def keep(self, record: BackfillRecord) -> None:
        """Write down where it stands."""
        self.record = record
        write_record(self.platform.lake, record)

    def stop(
        self,
        what: str,
        todo: str,
        lines: Sequence[str] = (),
        state: Literal["stopped", "paused"] = "stopped",
    ) -> StoppedError:
        """Write down why it stands still."""
        self.keep(self.record.told(what, kind=state, state=state))
        return StoppedError(f"The plan {self.record.name} stopped: {what}", todo, lines)


@contextmanager
def sitting_over(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    place: Path | None = None,
) -> Iterator[Sitting]:
    """Begin a backfill, or go on with it; nobody else works on it meanwhile.

    Args:
        place: where the plan was read, so that another file of its name does not take it over.

    Raises:
        BackfillError: something is in the way, an approval is missing, or it was applied before.
    """
    platform.sync()
    with plan_lock(platform.lake, file.name):
        if place is not None:
            refuse_namesake(platform.lake, file, place)
        record = _begun(platform, file, author).worked_on_by(author.run)
        if place is not None:
            record = record.model_copy(update={"place": str(place.resolve())})
        sitting = Sitting(platform, spark, author, record, progress)
        sitting.keep(record)
        yield sitting


def stop_if_paused(sitting: Sitting) -> None:
    """Stand still where somebody asked for it."""
    name = sitting.record.name
    if is_paused(sitting.platform.lake, name):
        todo = f"`platform-assets plan resume {name}`, then apply it again."
        raise sitting.stop("somebody paused it", todo, state="paused")


def refuse_overruled(sitting: Sitting) -> None:
    """Stand still where a backfill would overrule a decision of which nobody knew who explained or approved it."""
    sitting.platform.sync()
    if found := list(overruled(sitting.platform, sitting.record)):
        raise sitting.stop(found[0].what, found[0].todo, [one.what for one in found[1:]])


def may_go_on(sitting: Sitting) -> None:
    """Stand still where the backfill may compute no further now.

    Raises:
        StoppedError: somebody paused it, it is outside of its hours, or a budget is used up.
    """
    file, record = sitting.record.file, sitting.record
    stop_if_paused(sitting)
    if not may_compute(file.service, datetime.now(UTC)):
        raise sitting.stop(
            f"it may only compute within {file.service.hours} UTC", "Apply it again then.", state="paused"
        )
    if seconds_left(file.service, datetime.now(UTC)) == 0:
        raise sitting.stop(
            f"it had to be staged until {file.service.until} UTC",
            "Write a later service.until in the file, have that approved where it is asked for, and apply it again; or "
            f"`platform-assets plan cancel {record.name}`.",
        )
    if used := spent(file.budget, record.seconds, record.bytes, cores_of(sitting.platform)):
        raise sitting.stop(
            used, "Raise the budget in the file, have that approved where it is asked for, and apply it again."
        )


@contextmanager
def keys_stay_apart(sitting: Sitting) -> Iterator[None]:
    """Stand still where the rest of a day cannot stay as it is, beside the rows of some keys."""
    try:
        yield
    except ScopeError as error:
        todo = f"`platform-assets plan cancel {sitting.record.name}`, and apply it again, or without `only`."
        raise sitting.stop(error.what, todo) from error


def accepted_by_plan(sitting: Sitting) -> tuple[Check, ...]:
    """Return what an approval of a plan accepts of its days: that settled figures move."""
    decided = sitting.platform.ledger.decisions(PlanDecision, as_far_as_readable=True)
    return ("settled",) if approved_by(sitting.record.file, sitting.record.hash, decided) else ()


def publication_by(platform: Platform, record: BackfillRecord) -> PublicationRecord | None:
    """Return the publication that a backfill made, also where whoever made it died before it could say so."""
    platform.settle()
    # One of the same name and content, whose record is gone, may have been published before this one began.
    since = -1 if record.looked_at is None else record.looked_at
    published = [head for head in platform.ledger.heads("recompute") if head.run == record.run and head.release > since]
    return max(published, key=lambda head: head.release, default=None)


def why_of(file: PlanFile) -> str:
    """Return what is kept with all that a plan publishes."""
    return f"plan {file.name}: {file.reason}"


def _begun(platform: Platform, file: PlanFile, author: Author) -> BackfillRecord:
    """Return the record to go on with: of this very plan as it was begun, or a new one."""
    before = find_record(platform.lake, file.name)
    if before and before.wants_proof and before.file == file:
        return before
    if before and (over := applied_before(before)):
        raise BackfillError(over.what, over.todo)
    is_of_this_lake = before is None or (before.looked_at or 0) <= platform.current_release().number
    if before and before.state != "cancelled" and is_of_this_lake:
        if before.file == file and before.versions_hold(platform.versions):
            return before
        if before.state == "publishing" and publication_by(platform, before):
            return before
    if (before is None or before.state == "cancelled") and (stage := stage_of(platform, file.name)):
        raise BackfillError(
            f"The stage {stage.name} is there already, and not by this plan.",
            f"Drop it with `platform-assets stage drop {stage.name}`, and apply the plan again.",
        )
    with begin_lock(platform.lake):  # who looks whether another comes to the same days is not yet seen by that other
        platform.sync()
        backfill = explain(platform, file)
        _refuse(backfill)
        record = BackfillRecord.new(backfill)
        if before:
            kept = {name: getattr(before, name) for name in ("events", "seconds", "starts", "runs")}
            if before.state != "cancelled":
                # Of a release that the lake does not have, nobody can tell what came after it.
                kept["looked_at"] = before.looked_at if is_of_this_lake else record.looked_at
                _keep_what_is_asked_for(platform, before, record)
            record = record.model_copy(update=kept)
        if before is None or before.state == "cancelled":
            forget_pause(platform.lake, file.name)  # of the one before, however it was left behind
        record = record.told(f"begun{' anew' if before else ''} as {record.hash}", author.who, "begun")
        write_record(platform.lake, record)
    return record


def _keep_what_is_asked_for(platform: Platform, before: BackfillRecord, now: BackfillRecord) -> None:
    """Take out of a stage what a plan no longer comes to; nobody approves, or holds against gates, what is left of it.

    Of other keys than before all of it goes: what was staged beside them was carried over, and is to be computed.
    """
    if stage_of(platform, now.name) is None:
        return
    if before.file.only != now.file.only:
        drop_stage(platform, STAGE + now.name)
        return
    wanted: dict[str, Collection[date]] = {}
    for step in now.steps:
        for table, days in step.days.items():
            wanted[table] = {*wanted.get(table, ()), *days}
    narrow_stage(platform, STAGE + now.name, wanted)


def _refuse(backfill: Backfill) -> None:
    name = backfill.file.name
    if backfill.blocking:
        raise ObstructedError(name, backfill.blocking)
    if not backfill.consent.is_there:
        raise BackfillError(
            f"The plan {name} needs {counted(backfill.consent.needed, 'approval')} of {backfill.hash} and has "
            f"{len(backfill.consent.given)}, because {' and '.join(backfill.consent.because)}.",
            f"Ask somebody to run `platform-assets plan approve FILE --hash {backfill.hash} --reason … --by …`.",
        )
