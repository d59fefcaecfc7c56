"""After a backfill was staged or published: prove it, roll it back, give it up."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.backfill.apply import BackfillError, publication_by
from platform_assets.operations.backfill.record import OVER, STAGE, BackfillRecord, read_record, unpause, write_record
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.operations.stages.stages import drop_stage
from platform_assets.operations.stages.store import stage_names
from platform_assets.operations.verify.verdicts import TableVerified
from platform_assets.operations.verify.verify import verify
from platform_assets.planning.sampling import Draw
from platform_assets.planning.selection import Selection
from platform_assets.progress import OnProgress, no_progress
from platform_assets.spark.session.on_demand import SparkOnDemand


def prove(
    platform: Platform,
    spark: SparkOnDemand,
    record: BackfillRecord,
    most: int | None = None,
    progress: OnProgress = no_progress,
) -> tuple[TableVerified, ...]:
    """Compute published days of a backfill once more, from what they were made from.

    Args:
        platform: as it is now.
        spark: gives the session.
        record: of a backfill that was published.
        most: days of each table besides its newest; all by default.
        progress: told after every batch.

    Raises:
        BackfillError: it was not published.
    """
    days = _published(platform, record)
    proved: list[TableVerified] = []
    with private_folder(platform.lake) as folder:
        for table, of_table in days.items():
            selection = Selection(frozenset({table}), frozenset(of_table))
            draw = None if most is None else Draw(most, seed=int(record.hash, 16))
            proved += verify(platform, spark, selection, folder, progress, draw)
    return tuple(proved)


def note_proof(platform: Platform, record: BackfillRecord, proved: Collection[TableVerified]) -> BackfillRecord:
    """Write down how published days came out."""
    different = [f"{one.table} {day.day}" for one in proved for day in one.of("different")]
    equal = sum(len(one.of("equal")) for one in proved)
    what = f"{equal} days computed once more and equal" + (f"; different: {', '.join(different)}" if different else "")
    record = record.told(what)
    write_record(platform.lake, record)
    return record


def roll_back(platform: Platform, name: str, author: Author, progress: OnProgress = no_progress) -> BackfillRecord:
    """Put exactly the days of a backfill back as they were before it.

    Raises:
        BackfillError: it was not published.
        RollbackError: as for every rollback.
    """
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        _published(platform, record)
        done = rollback(
            platform, chosen_publications(platform, record.publication, None, None), author, progress=progress
        )
        record = record.told(f"rolled back in release {done.release}: {author.why}", author.who, state="rolled back")
        write_record(platform.lake, record)
    return record


def cancel(platform: Platform, name: str, author: Author) -> BackfillRecord:
    """Give a backfill up that was not published: what it staged is deleted.

    Raises:
        BackfillError: it was published, or is over.
    """
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        if record.state in OVER or (record.state == "publishing" and publication_by(platform, record)):
            raise BackfillError(
                f"The plan {name} is {record.state} and cannot be cancelled.",
                f"`platform-assets plan rollback {name}` puts its days back, if it was published.",
            )
        if STAGE + name in stage_names(platform.lake):
            drop_stage(platform, STAGE + name)
        unpause(platform.lake, name)
        record = record.told(f"cancelled: {author.why}", author.who, state="cancelled", done=0)
        write_record(platform.lake, record)
    return record


def _published(platform: Platform, record: BackfillRecord) -> dict[str, list[date]]:
    if record.state != "published":
        raise BackfillError(
            f"The plan {record.name} is {record.state}, not published.",
            "`platform-assets plan status` shows all plans.",
        )
    published = platform.ledger.publication(record.publication)
    days: dict[str, list[date]] = {}
    for day in published.days if published else ():
        if day.table in platform.catalogue.names:
            days.setdefault(day.table, []).append(day.day)
    return days
