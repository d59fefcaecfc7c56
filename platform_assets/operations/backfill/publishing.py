"""What a backfill staged becomes one release, whoever dies in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.failpoints import failpoint
from platform_assets.operations.backfill.overruled import refuse_overruled
from platform_assets.operations.backfill.overtaken import overtaken
from platform_assets.operations.backfill.pages import days_told
from platform_assets.operations.backfill.sitting import Sitting, keys_stay_apart, may_go_on, publication_by, why_of
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.backfill.staging import judge, refuse_failed
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.progress import Progress
from platform_assets.records.history import PublicationRecord
from platform_assets.words import counted


def publish(sitting: Sitting, report: Callable[[str], None]) -> None:
    """Show everything in one release; whoever died in between finds what the dead one published.

    What others published meanwhile is computed in first, and that the gates have not seen: they are asked again.

    Args:
        sitting: works on it.
        report: told what happened, in sentences.

    Raises:
        StoppedError: there is nothing to publish, or days that the plan does not come to; it would overrule what was
            decided since it began; what others published meanwhile makes of it what a gate refuses; or it may compute
            no further now, and something has to be computed again.
    """
    platform, file = sitting.platform, sitting.record.file
    if sitting.record.state == "published":
        return
    stage = STAGE + file.name

    def look(now: OpenStage, failed: Mapping[str, Mapping[date, str]]) -> None:
        _tell_overtaken(sitting, opened, now, report)
        refuse_overruled(sitting)  # while it was computed again, too, somebody may have put days back
        refuse_failed(sitting, failed, 100)
        judge(sitting, 100, report, now)

    def told(now: Progress) -> None:
        sitting.progress(now)
        if now.phase == "computing" and not now.finished:
            may_go_on(sitting)  # what others overtook is computed within its hours and its budget, as all of it

    if sitting.record.state != "publishing":
        sitting.keep(sitting.record.told("publishing", state="publishing"))
    failpoint("plan.publishing")
    opened = stage_of(platform, file.name)
    if opened and (opened.staged.days or opened.staged.holds):
        if publication_by(platform, sitting.record) is None:
            _refuse_strangers(sitting, opened)
            refuse_overruled(sitting)
        author = replace(sitting.author, run=sitting.record.run, why=why_of(file))
        allowed = file.override_protected.named() if file.override_protected else frozenset()
        with keys_stay_apart(sitting):
            publish_stage(platform, sitting.spark, author, stage, told, look, allowed)
    failpoint("plan.published")
    newest = publication_by(platform, sitting.record)
    if newest is None:
        sitting.record = sitting.record.model_copy(update={"done": 0})
        raise sitting.stop(
            "no day came out another one and good, so there is nothing to publish",
            f"Apply it again to compute it anew, or `platform-assets plan cancel {file.name}`.",
        )
    sitting.keep(as_published(platform, sitting.record, newest))
    what = sitting.record.events[-1].what
    report(f"{what[0].upper()}{what[1:]}.")


def as_published(platform: Platform, record: BackfillRecord, newest: PublicationRecord) -> BackfillRecord:
    """What became of a backfill once others see it.

    Args:
        platform: as it is now.
        record: of before.
        newest: publication that it made.
    """
    published = platform.ledger.publication(newest.publication)
    days = {(day.table, day.day) for day in published.days} if published else set()
    record = record.model_copy(
        update={
            "release": newest.release,
            "publication": newest.publication,
            "published_days": len(days & record.planned),
        }
    )
    return record.told(
        f"published in release {newest.release}: {days_told(record)}", kind="published", state="published"
    )


def _tell_overtaken(sitting: Sitting, before: OpenStage | None, now: OpenStage, report: Callable[[str], None]) -> None:
    """Say who overtook what was staged, before a gate refuses what became of it; once, however often it is tried."""
    what = overtaken(sitting.platform, before, now) if before else ""
    if what and what not in {event.what for event in sitting.record.events}:
        report(f"{what[0].upper()}{what[1:]}.")
        sitting.keep(sitting.record.told(what))


def _refuse_strangers(sitting: Sitting, stage: OpenStage) -> None:
    """Days that somebody else staged there were never explained, nor looked at by the gates."""
    names = sitting.platform.catalogue.names
    strange = [(table, day) for table, days in stage.staged.days.items() if table in names for day in days]
    strange = sorted(set(strange) - sitting.record.planned)
    if strange:
        table, day = strange[0]
        raise sitting.stop(
            f"its stage holds {counted(len(strange), 'day')} that it does not come to, first {table} {day}: somebody "
            "computed them there",
            f"`platform-assets plan cancel {sitting.record.name}`, and apply it again.",
        )
