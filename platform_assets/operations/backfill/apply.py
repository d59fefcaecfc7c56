"""Apply a backfill: stage it step by step, hold each against the gates, publish all of it at once, prove it.

What is applied is what was explained and, where that is asked for, approved. Whatever ends the process, the next call
goes on after the last batch of days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.releases import published
from platform_assets.operations.backfill.pages import days_told
from platform_assets.operations.backfill.sitting import (
    Sitting,
    keys_stay_apart,
    may_go_on,
    publication_by,
    refuse_overruled,
    sitting_over,
    why_of,
)
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.backfill.staging import judge, refuse_failed, stage_rollout
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.windows import union_reached, which
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.history import PublicationRecord
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.words import counted

_SHOWN = 3
"""Publications that are named."""


def publish(sitting: Sitting, report: Callable[[str], None]) -> None:
    """Show everything in one release; whoever died in between finds what the dead one published.

    What others published meanwhile is computed in first, and that the gates have not seen: they are asked again.

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
    """Return what became of a backfill once others see it."""
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
    """Refuse days that somebody else staged there: no one explained them, and no gate looked at them."""
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


def overtaken(platform: Platform, before: OpenStage, now: OpenStage) -> str:
    """Return what was computed again since it was staged, and because of whose publications; empty for nothing."""
    again = _again(platform, before, now)
    if not again:
        return ""
    days = sum(map(len, again.values()))
    tables = "; ".join(f"{table} {which(sorted(of_table))}" for table, of_table in again.items())
    since = list(_since(platform, before.release, again))
    by = ", and ".join(f"{one.who} in release {one.release} ({one.kind}: {one.why})" for one in since[:_SHOWN])
    more = f", and {len(since) - _SHOWN:,} more" if len(since) > _SHOWN else ""
    whose = f" by {by}{more}" if by else ""
    staged = f"overtaken since {'it was' if days == 1 else 'they were'} staged"
    return f"computed {counted(days, 'day')} again, {staged}{whose}: {tables}"


def _again(platform: Platform, before: OpenStage, now: OpenStage) -> dict[str, set[date]]:
    """Return the staged days that are others now, or are no more, by table; those that came with them included."""
    again: dict[str, set[date]] = {}
    for table in platform.catalogue.names:
        was, becomes = before.staged.of(table), now.staged.of(table)
        if days := {day for day in was.keys() | becomes.keys() if was.get(day) != becomes.get(day)}:
            again[table] = days
    return again


def _since(platform: Platform, release: int, again: dict[str, set[date]]) -> Iterator[PublicationRecord]:
    """Yield what was published after a release of some days of tables, or of the days that these read, newest first."""
    for _, name in sorted(published(platform.lake, after=release), reverse=True):
        record = platform.ledger.publication(name)
        if record is not None and any(_reaches(platform, record, table, days) for table, days in again.items()):
            yield record


def _reaches(platform: Platform, record: PublicationRecord, table: str, days: set[date]) -> bool:
    changed: dict[str, set[date]] = {}
    for one in record.days:
        changed.setdefault(one.table, set()).add(platform.counted_on(one.table, one.day))
    if days & changed.get(table, set()):
        return True
    return any(
        first <= day <= last
        for read in platform.catalogue[table].inputs
        if read.table in changed
        for first, last in union_reached(read.window, changed[read.table], platform.calendar)
        for day in days
    )


def apply(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    report: Callable[[str], None] = lambda sentence: None,
    place: Path | None = None,
) -> BackfillRecord:
    """Stage what a plan comes to, step by step and each held against its gates, and publish it in one release.

    Args:
        place: where the plan was read, so that another file of its name does not take it over.

    Returns:
        What became of it: published. One that was published before and not proved yet, as its file asks for, is just
        given back.

    Raises:
        BackfillError: something is in the way, an approval is missing, or it was applied before.
        StoppedError: a gate failed, the budget is used up, or somebody paused it; the next call goes on.
        LockTimeoutError: somebody else applies it.
    """
    with sitting_over(platform, spark, file, author, progress, place) as sitting:
        stage_rollout(sitting, report)
        publish(sitting, report)
    return sitting.record
