"""After a backfill was staged or published: prove it, roll it back, give it up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.backfill.apply import as_published
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError, publication_by
from platform_assets.operations.plan_record import (
    OVER,
    ROLLBACK_OF,
    STAGE,
    BackfillRecord,
    forget_pause,
    read_record,
    write_record,
)
from platform_assets.operations.rollback import Rollback, rollback
from platform_assets.operations.rollback_choice import chosen_publications, rolled_back_already
from platform_assets.operations.stages.stages import drop_stage
from platform_assets.operations.stages.store import stage_names
from platform_assets.operations.verify import TableVerified, Verified, verify
from platform_assets.planning.backfill.pace import may_compute
from platform_assets.planning.selection import Draw, Selection
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.spark.session.on_demand import SparkOnDemand


def prove(
    platform: Platform,
    spark: SparkOnDemand,
    record: BackfillRecord,
    most: int | None = None,
    progress: OnProgress = no_progress,
) -> tuple[TableVerified, ...]:
    """Compute published days of a backfill once more, from what they were made from.

    Of days that somebody has made something else of since, that would prove somebody else's work: they are named so.
    """
    days = _published(platform, record)
    proved: list[TableVerified] = []
    with private_folder(platform.lake) as folder:
        for table, of_table in days.items():
            replaced = _replaced(platform, table, of_table)
            if own := frozenset(of_table.keys() - {day.day for day in replaced}):
                draw = None if most is None else Draw(most, seed=int(record.hash, 16))
                proved += verify(platform, spark, Selection(frozenset({table}), own), folder, progress, draw)
            if replaced:
                proved.append(TableVerified(table, replaced))
    return tuple(proved)


def _replaced(platform: Platform, table: str, published: Mapping[date, DayRecord]) -> tuple[Verified, ...]:
    """Return the days of which readers see something else than a backfill published, each with what made it of them."""
    now = platform.ledger.current_days(table, among=published)
    replaced: list[Verified] = []
    for day, record in sorted(published.items()):
        current = now.get(day)
        if current is None or current.digest != record.digest:
            head = platform.ledger.head(current.publication) if current else None
            by = f", by {head.who} in release {head.release} ({head.kind})" if head else ""
            reason = f"{table} {day} was made another one since{by}"
            replaced.append(Verified(day, "not verifiable", reason, Digest.parse(record.digest)))
    return tuple(replaced)


def note_proof(
    platform: Platform, record: BackfillRecord, proved: Collection[TableVerified], *, is_all: bool = True
) -> BackfillRecord:
    """Write down how published days came out; `is_all` unless something is to be done about it."""
    different = [f"{one.table} {day.day}" for one in proved for day in one.of("different")]
    equal = sum(len(one.of("equal")) for one in proved)
    unknown = [day.reason for one in proved for day in one.of("not verifiable")]
    what = f"{equal} days computed once more and equal" + (f"; different: {', '.join(different)}" if different else "")
    what += f"; {len(unknown)} cannot be: {unknown[0]}" if unknown else ""
    record = record.with_event(what, kind="proved", proved=is_all, different_days=len(different))
    write_record(platform.lake, record)
    return record


def prove_sample(
    platform: Platform,
    spark: SparkOnDemand,
    record: BackfillRecord,
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[BackfillRecord, tuple[TableVerified, ...]]:
    """Compute a sample once more, as a plan asks for once it is published; all of it goes if a day differs.

    It begins within the hours of the plan, and then goes to its end: of a proof that was broken off nothing is left,
    and one that never fitted into the hours would be begun for ever.

    Returns:
        What became of it, and what was computed once more: nothing of one that was proved and came out equal.

    Raises:
        StoppedError: it may not compute now; it stays published, and the next call proves it.
    """
    asked = record.file.afterwards
    was_equal = record.state == "published" and record.proved and not record.different_days
    if not asked.verify or was_equal:  # asked once more, as by another try of a run, it would take as long again
        return record, ()
    if record.wants_proof and not may_compute(record.file.service, datetime.now(UTC)):
        what = f"its proof waits for its hours, {record.file.service.hours} UTC"
        if record.events and record.events[-1].what != what:
            write_record(platform.lake, record.with_event(what))
        raise StoppedError(
            f"The plan {record.name} is {record.came_to}, and {what}.",
            "Apply it again then: that computes the sample and nothing else.",
        )
    proved = prove(platform, spark, record, asked.verify, progress)
    goes = asked.roll_back_on_failure and any(table.of("different") for table in proved)
    record = note_proof(platform, record, proved, is_all=not goes)
    if goes:
        record, _ = roll_back(platform, record.name, author, progress)
    return record, proved


def roll_back(
    platform: Platform, name: str, author: Author, progress: OnProgress = no_progress, *, cascade: bool = False
) -> tuple[BackfillRecord, Rollback | None]:
    """Put exactly the days of a backfill back as they were before it.

    Returns:
        What became of it; and the rollback, None where somebody did it who died before saying so.
    """
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        if record.state == "publishing" and (newest := publication_by(platform, record)):
            record = as_published(platform, record, newest)  # whoever applied it died before saying so
        before, done = rollback_of(platform, record), None
        if before and record.state == "rolled back":
            raise BackfillError(
                f"The plan {name} {rolled_back_already(before)}", f"`platform-assets plan status {name}` shows it."
            )
        _published(platform, record)
        if before:
            release: int | None = before.release
        else:
            chosen = chosen_publications(platform, record.publication, None, None)
            undoing = replace(author, run=_undoing(record))
            done = rollback(platform, chosen, undoing, cascade=cascade, progress=progress)
            release = done.release
        what = f"rolled back in release {release}: {author.why}"
        record = record.with_event(what, author.who, "rolled back", state="rolled back")
        write_record(platform.lake, record)
    return record, done


def cancel(platform: Platform, name: str, author: Author) -> BackfillRecord:
    """Give a backfill up that was not published: what it staged is deleted."""
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        if record.state in OVER or (record.state == "publishing" and publication_by(platform, record)):
            raise BackfillError(
                f"The plan {name} is {record.state} and cannot be cancelled.",
                f"`platform-assets plan rollback {name}` puts its days back, if it was published.",
            )
        if STAGE + name in stage_names(platform.lake):
            drop_stage(platform, STAGE + name)
        forget_pause(platform.lake, name)
        record = record.with_event(f"cancelled: {author.why}", author.who, "cancelled", state="cancelled", done=0)
        write_record(platform.lake, record)
    return record


def rollback_of(platform: Platform, record: BackfillRecord) -> PublicationRecord | None:
    """Return the publication that rolled a backfill back, also if its maker died before saying so; None without any."""
    platform.settle()
    # One of the same name and content, whose record is gone, may have been published and undone before this one.
    since = -1 if record.release is None else record.release
    undone = [head for head in platform.ledger.heads("roll back") if head.run == _undoing(record)]
    undone = [head for head in undone if head.release > since]
    return max(undone, key=lambda head: head.release, default=None)


def _undoing(record: BackfillRecord) -> str:
    """Return the run that its rollback names."""
    return f"{ROLLBACK_OF}{record.run}"


def _published(platform: Platform, record: BackfillRecord) -> dict[str, dict[date, DayRecord]]:
    if record.state != "published":
        raise BackfillError(
            f"The plan {record.name} is {record.state}, not published.",
            "`platform-assets plan status` shows all plans.",
        )
    published = platform.ledger.publication(record.publication)
    if published is None:
        raise BackfillError(
            f"The plan {record.name} was published by {record.publication}, which this lake does not have: it was "
            "restored from an older backup, or the record is of another one.",
            f"Remove {platform.lake.plans_path / record.name}.json to apply the plan again.",
        )
    days: dict[str, dict[date, DayRecord]] = {}
    for day in published.days:
        if day.table in platform.catalogue.names:
            days.setdefault(day.table, {})[day.day] = day
    return days
