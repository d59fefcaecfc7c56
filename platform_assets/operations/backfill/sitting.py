"""One sitting of a backfill: from its start, or from the end of the last one, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.locks import begin_lock, plan_holder, plan_lock, publish_holder
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import PlacedError
from platform_assets.operations.backfill.obstacles import applied_before
from platform_assets.operations.backfill.standing import cores_of, stage_of
from platform_assets.operations.plan_record import (
    OVER,
    STAGE,
    BackfillRecord,
    find_record,
    forget_pause,
    is_paused,
    write_record,
)
from platform_assets.planning.backfill.backfill import Backfill, Obstacle, approved_by
from platform_assets.planning.backfill.pace import may_compute, seconds_left, spent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import ScopeError
from platform_assets.planning.windows import which
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import ROLL_BACK, PublicationRecord
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.step.work import LookedAt
    from platform_assets.spark.session.on_demand import SparkOnDemand, TimedSpark


class BackfillError(PlatformError):
    """A backfill cannot begin or continue."""


class ObstructedError(BackfillError, PlacedError):
    """An obstacle prevents it."""

    def __init__(self, name: str, obstacles: Sequence[Obstacle]) -> None:
        first, *more = obstacles
        super().__init__(f"The plan {name} cannot begin: {first.sentence}", first.todo, [one.sentence for one in more])
        self.field = first.field


class StoppedError(BackfillError):
    """A backfill stopped. Its staged days stay, readers see none of them, and it can continue."""


@dataclass
class Sitting:
    """A process working on a backfill, and its progress."""

    platform: Platform
    spark: TimedSpark
    author: Author
    record: BackfillRecord
    progress: OnProgress
    report: Callable[[str], None]

    def __post_init__(self) -> None:
        self.starts_before = self.record.starts
        self.keep(self.record)

    def keep(self, record: BackfillRecord) -> None:
        """Write the record."""
        self.record, self.kept = record, time.monotonic()
        write_record(self.platform.lake, record)

    def say(self, what: str) -> None:
        """Report an event, as a sentence."""
        self.report(f"{what[0].upper()}{what[1:]}.")

    def stop(
        self,
        what: str,
        todo: str,
        lines: Sequence[str] = (),
        state: Literal["stopped", "paused"] = "stopped",
    ) -> StoppedError:
        """Record why the backfill stopped."""
        self.keep(self.record.with_event(what, kind=state, state=state))
        return StoppedError(f"The plan {self.record.name} stopped: {what}", todo, lines)


@contextmanager
def sitting_over(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    report: Callable[[str], None] = lambda sentence: None,
    place: Path | None = None,
) -> Iterator[Sitting]:
    """Begin or resume a backfill, under its lock."""
    from platform_assets.spark.session.on_demand import TimedSpark  # Spark, which reading a plan does not need

    platform.sync()
    with plan_lock(platform.lake, file.name):
        record = _begun(platform, file, author).worked_on_by(author.run)
        if place is not None:
            record = record.model_copy(update={"place": str(place.resolve())})
        yield Sitting(platform, TimedSpark(spark), author, record, progress, report)


def stop_if_paused(sitting: Sitting) -> None:
    """Stop if a person paused the plan."""
    name = sitting.record.name
    if is_paused(sitting.platform.lake, name):
        todo = f"`platform-assets backfill resume {name}`, then apply it again."
        raise sitting.stop("it was paused", todo, state="paused")


def refuse_overruled(sitting: Sitting) -> None:
    """Stop if the backfill would overrule a decision made after it was explained or approved."""
    sitting.platform.sync()
    if found := list(overruled(sitting.platform, sitting.record)):
        raise sitting.stop(found[0].what, found[0].todo, [one.what for one in found[1:]])


def may_go_on(sitting: Sitting) -> None:
    """Stop if the backfill may compute no further now."""
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
            f"`platform-assets undo backfill:{record.name} --reason …`.",
        )
    if used := spent(file.budget, record.seconds, record.bytes, cores_of(sitting.platform)):
        raise sitting.stop(
            used, "Raise the budget in the file, have that approved where it is asked for, and apply it again."
        )


@contextmanager
def keys_stay_apart(sitting: Sitting) -> Iterator[None]:
    """Stop if the other rows of a day cannot stay unchanged while some keys are computed."""
    try:
        yield
    except ScopeError as error:
        todo = (
            f"`platform-assets undo backfill:{sitting.record.name} --reason …`, and apply it again, or without `only`."
        )
        raise sitting.stop(error.what, todo) from error


def accepted_by_plan(sitting: Sitting) -> LookedAt:
    """Return days whose settled figures may move: those for which the plan stopped, if it was approved since."""
    record, since = sitting.record, sitting.record.settled_at
    decided = sitting.platform.ledger.decisions(PlanDecision, as_far_as_readable=True)
    looked = [decision for decision in decided if since and decision.created_at > since]
    return record.settled if approved_by(record.file, record.hash, looked) else {}


def publication_by(platform: Platform, record: BackfillRecord) -> PublicationRecord | None:
    """Return the publication that a backfill made, even if its process died before recording it."""
    platform.settle()
    # One of the same name and content, whose record is gone, may have been published before this one began.
    since = -1 if record.looked_at is None else record.looked_at
    published = [head for head in platform.ledger.heads("recompute") if head.run == record.run and head.release > since]
    return max(published, key=lambda head: head.release, default=None)


def why_of(file: PlanFile) -> str:
    """Return the reason to record in each publication of a plan."""
    return f"plan {file.name}: {file.reason}"


def _begun(platform: Platform, file: PlanFile, author: Author) -> BackfillRecord:
    """Return the record to continue with: that of this plan, or a new one."""
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
            f"Drop it with `platform-assets undo stage:{stage.name}`, and apply the plan again.",
        )
    with begin_lock(platform.lake):  # who looks whether another comes to the same days is not yet seen by that other
        platform.sync()
        backfill = explain(platform, file)
        _refuse(backfill)
        record = BackfillRecord.new(backfill)
        if before:
            kept = {name: getattr(before, name) for name in ("events", "seconds", "starts", "runs")}
            if before.state != "cancelled":
                # Decisions after a release that the lake does not have are unknown.
                kept["looked_at"] = before.looked_at if is_of_this_lake else record.looked_at
                _keep_what_is_asked_for(platform, before, record)
            record = record.model_copy(update=kept)
        if before is None or before.state == "cancelled":
            forget_pause(platform.lake, file.name)  # of the one before, however it was left behind
        record = record.with_event(f"begun{' anew' if before else ''} as {record.hash}", author.who, "begun")
        write_record(platform.lake, record)
    return record


def _keep_what_is_asked_for(platform: Platform, before: BackfillRecord, now: BackfillRecord) -> None:
    """Remove days from a stage that are no longer in the plan: they would be published without approval or gates.

    If the keys changed, all days go: their other rows were copied, and now have to be computed.
    """
    if stage_of(platform, now.name) is None:
        return
    from platform_assets.operations.stages.stages import drop_stage, narrow_stage  # Spark, too

    if before.file.only != now.file.only:
        drop_stage(platform, STAGE + now.name)
        return
    narrow_stage(platform, STAGE + now.name, now.by_table)


def _refuse(backfill: Backfill) -> None:
    name = backfill.file.name
    if backfill.blocking:
        raise ObstructedError(name, backfill.blocking)
    if not backfill.consent.is_there:
        raise BackfillError(
            f"The plan {name} needs {counted(backfill.consent.needed, 'approval')} of {backfill.hash} and has "
            f"{len(backfill.consent.given)}, because {' and '.join(backfill.consent.because)}.",
            f"Ask another person to run `platform-assets backfill approve FILE --hash {backfill.hash} --reason … "
            "--by …`.",
        )


def is_at_work(platform: Platform, record: BackfillRecord) -> bool:
    """Return whether a process is applying the plan now."""
    return record.state not in OVER and bool(plan_holder(platform.lake, record.name))


def waits_for(platform: Platform, record: BackfillRecord) -> tuple[str, ...]:
    """Return what must happen before a backfill continues, as sentences; nothing if it is over or being applied.

    A published plan that asks for a proof is not over before the proof.
    """
    if record.wants_proof:
        hours = record.file.service.hours
        if not may_compute(record.file.service, datetime.now(UTC)):
            return (f"Its proof waits for its hours, {hours} UTC: `platform-assets backfill apply FILE` then.",)
        return ("Its proof is still to come: from the running `apply`, or `platform-assets backfill apply FILE`.",)
    return () if record.state in OVER else tuple(_waits(platform, record))


def waits_to_begin(backfill: Backfill) -> tuple[str, ...]:
    """Return what must happen before a plan can be applied for the first time."""
    waits = [f"{obstacle.sentence} {obstacle.todo}" for obstacle in backfill.blocking]
    consent = backfill.consent
    if not consent.is_there:
        missing = counted(consent.needed - len(consent.given), "approval")
        waits.append(f"It waits for {missing} of {backfill.hash}, because {' and '.join(consent.because)}.")
    return tuple(waits)


def _waits(platform: Platform, record: BackfillRecord) -> Iterator[str]:
    lake, file = platform.lake, record.file
    if worker := plan_holder(lake, record.name):
        publisher = publish_holder(lake) if record.state == "publishing" else ""
        if publisher not in ("", worker):
            yield f"It waits for the publish lock, which {publisher} holds."
        return
    if is_paused(lake, record.name):
        yield f"It is paused: `platform-assets backfill resume {record.name}`."
    computes = record.done < len(record.steps)
    if computes and not may_compute(file.service, datetime.now(UTC)):
        yield f"It waits for its hours, {file.service.hours} UTC."
    if computes and seconds_left(file.service, datetime.now(UTC)) == 0:
        yield f"It had to be staged until {file.service.until} UTC: it waits for a later service.until in its file."
    if computes and (used := spent(file.budget, record.seconds, record.bytes, cores_of(platform))):
        yield f"It waits for more of a budget: {used}."
    if record.state != "publishing" and not record.versions_hold(platform.versions):
        yield "Code or a contract changed since it began: it is explained again."
        yield from waits_to_begin(explain(platform, file))
    for decided in overruled(platform, record):
        yield f"It would overrule what was decided since: {decided.what}. {decided.todo}"
    yield "No process applies it now: `platform-assets backfill apply FILE` goes on."


def overruled(platform: Platform, record: BackfillRecord) -> Iterator[Obstacle]:
    """Yield decisions since a backfill began that it would overrule, each as a phrase with its remedy."""
    planned, calendar, cancel = (
        record.by_table,
        platform.calendar,
        f"`platform-assets undo backfill:{record.name} --reason …`",
    )
    for table, every in planned.items():
        if outside := sorted(day for day in every if day not in calendar):
            lie = "lies" if len(outside) == 1 else "lie"
            yield Obstacle(
                f"{counted(len(outside), 'day')} of {table} {lie} outside the calendar by now ({which(outside)}), from "
                f"{calendar.first} to {calendar.last}",
                "Leave them out in the file and apply it again, or set `calendar_first` and `calendar_last` as they "
                f"were; or {cancel}.",
            )
    if record.looked_at is None:
        return
    since = {head.run: head for head in platform.ledger.heads(ROLL_BACK) if head.release > record.looked_at}
    by_whom: dict[tuple[str, str], list[date]] = {}
    for hold in platform.ledger.holds():
        if hold.is_of_good_content and hold.run in since and hold.day in planned.get(hold.table, ()):
            by_whom.setdefault((hold.table, hold.run), []).append(hold.day)
    for (table, run), days in by_whom.items():
        yield Obstacle(
            f"{since[run].who} put {counted(len(days), 'day')} of {table} back since it began ({which(sorted(days))}), "
            f"because: {since[run].why}",
            f"{cancel}; apply it again if it is right all the same, or leave them out with `days.without`.",
        )
