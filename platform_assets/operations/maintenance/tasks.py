"""Maintenance, one task of it at a time: the small files of a day as one, with equal content, among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from itertools import groupby

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from platform_assets.engine.day_contents import staged_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, new_stage, publish_rest, replaced
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import LockTimeoutError
from platform_assets.lakehouse.layout import DELIVERED
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.releases import computed_by, release
from platform_assets.operations.maintenance.maintenance import (
    Maintenance,
    ToCompact,
    delete_unneeded,
    plan_maintenance,
    sum_up,
)
from platform_assets.planning.retention import Task
from platform_assets.planning.steps import bytes_among, whole_parts_of
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, DayContent, TableChange
from platform_assets.spark.compare.profiles import by_columns, digests_in_files
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import read_files
from platform_assets.spark.tables.staging import stage

_INGEST_WAIT_S = 5.0
"""How long the ingest of a raw table is waited for; it may take hours, and another time will do."""


def compact(
    platform: Platform, spark: SparkOnDemand, author: Author, progress: OnProgress = no_progress
) -> Maintenance:
    """Make one file of the small files of every day that has too many.

    Digest, fingerprint and figures stay, and the digest is counted again from the files before they are published. Days
    whose content somebody else replaced meanwhile are left for the next time, like tables that are being ingested into.

    Returns:
        The days that were compacted, and those left with the reason.
    """
    platform.settle()
    done = Maintenance()
    with meanwhile(progress, "looking for small files"):
        due = plan_maintenance(platform, ["compaction"]).compaction
    for table, days in groupby(due, lambda day: day.table):
        failpoint("compact.planned")
        done += _compact_table(platform, spark, table, tuple(days), author, progress)
    return done


def _compact_table(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: Sequence[ToCompact],
    author: Author,
    progress: OnProgress,
) -> Maintenance:
    busy: dict[date, str] = {}
    differing: tuple[date, ...] = ()
    with ExitStack() as locks:
        try:
            for raw in _ingested_with(platform, table):
                locks.enter_context(ingest_lock(platform.lake, raw, _INGEST_WAIT_S))
        except LockTimeoutError:
            return Maintenance(
                busy={table: dict.fromkeys((day.day for day in days), "its raw table is being ingested into")}
            )
        failpoint("compact.locked")
        progress(Progress("compacting", table, 0, len(days)))
        for start in range(0, len(days), platform.settings.batch_days):
            batch = days[start : start + platform.settings.batch_days]
            others, met = _compact(platform, spark(), table, batch, author)
            differing, busy = (*differing, *others), {**busy, **dict.fromkeys(met, "it was published again meanwhile")}
            progress(Progress("compacting", table, start + len(batch), len(days)))
    progress(Progress("compacting", table, len(days), len(days), finished=True))
    return Maintenance(
        compaction=tuple(day for day in days if day.day not in busy and day.day not in differing),
        busy={table: busy} if busy else {},
        differing={table: differing} if differing else {},
    )


def _ingested_with(platform: Platform, table: str) -> list[str]:
    """Return the raw table whose ingest appends to a table: itself, or what it refused or found to be late."""
    layer, _, name = table.partition(".")
    raw = f"raw.{name}"
    return [raw] if layer in DELIVERED and raw in platform.catalogue.names else []


def _compact(
    platform: Platform, spark: SparkSession, table: str, days: Sequence[ToCompact], author: Author
) -> tuple[list[date], tuple[date, ...]]:
    """Compact one batch; returns the days whose files hold other rows, and those somebody else published meanwhile."""
    now = release(platform.lake, days[0].release)
    path = platform.lake.table_path(table)
    schema_string = table_snapshot(path, now.versions[table]).schema_string
    schema = StructType.fromJson(json.loads(schema_string))
    records = platform.ledger.current_days(table, at=now.number, among=[day.day for day in days])
    there = {day.day: day.files for day in days}
    with new_stage(platform, [table]) as (publication, folders):
        for columns, alike in by_columns(path, [file for day in days for file in day.small], schema):
            parts = whole_parts_of(bytes_among(there, alike), platform.settings.part_bytes)
            stage(read_files(spark, path, alike, columns), folders[table], parts=parts)
        failpoint("compact.staged")
        staged = staged_at(platform.lake, table, publication)
        files = {
            day.day: (*(file for file in day.files if file.path not in day.small), *staged.get(day.day, ()))
            for day in days
        }
        digests = digests_in_files(spark, path, [file.path for content in files.values() for file in content], schema)
        equal = [
            day for day in days if day.day in records and records[day.day].digest == str(digests.get(day.day, Digest()))
        ]
        computed = computed_by(platform.lake, table, {day.day: records[day.day].publication for day in equal})
        contents = {day.day: _content(records[day.day], day, files[day.day], computed[day.day]) for day in equal}
        change = TableChange(table=table, schema_string=schema_string, days=contents)
        failpoint("compact.counted")
        met = _publish(LakeSnapshot(platform, now), publication, change, author)
        return [day.day for day in days if day.day not in contents], met


def _content(record: DayRecord, day: ToCompact, files: tuple[DataFile, ...], computed: str) -> DayContent:
    """Return what the day was, in other files."""
    return DayContent(
        files=files,
        base=tuple(file.path for file in day.files),
        digest=record.digest,
        fingerprint=record.fingerprint,
        rows=record.rows,
        bytes=sum(file.size for file in files),
        figures=record.figures,
        warnings=record.warnings,
        restores=computed,
    )


def _publish(snapshot: LakeSnapshot, publication: str, change: TableChange, author: Author) -> tuple[date, ...]:
    """Publish what nobody else published meanwhile; returns the days that somebody did."""
    platform = snapshot.platform

    def rest(met: Met, changes: Sequence[TableChange]) -> Rest:
        now = LakeSnapshot.now(platform)
        # Who computed a day anew that came out equal left its files, and recorded what it is made from.
        others = now.published_since(snapshot, change.table, change.days)
        return Rest({*replaced(met).left_out, *others}, now.number)

    met = publish_rest(platform, publication, "compact", [change], author, rest, on_release=snapshot.number)
    failpoint("compact.published")
    return met


def maintain(
    platform: Platform,
    spark: SparkOnDemand,
    task: Task,
    author: Author,
    progress: OnProgress = no_progress,
) -> Maintenance:
    """Do one task; killed at any moment, the next one goes on with what is left."""
    match task:
        case "compaction":
            return compact(platform, spark, author, progress)
        case "checkpoints":
            with meanwhile(progress, "summing up logs"):
                return Maintenance(checkpoints=sum_up(platform))
        case "stages" | "deletion":
            with meanwhile(progress, "deleting what nobody needs"):
                return Maintenance(deletions=delete_unneeded(platform, task))
