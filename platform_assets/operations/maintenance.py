"""Maintenance: compact the small files of a day, write checkpoints of logs, and delete unneeded files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.day_contents import files_at, in_other_files, staged_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, new_stage, publish_rest, replaced
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.new_commit import write_checkpoint
from platform_assets.lakehouse.delta.statistics import may_hold
from platform_assets.lakehouse.errors import LockTimeoutError
from platform_assets.lakehouse.layout import DELIVERED
from platform_assets.lakehouse.locks import ingest_lock, publish_lock
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.lakehouse.releases import computed_by, current_release, release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.operations.deletion import delete_unneeded, due_deletions
from platform_assets.planning.retention import (
    SMALL_BYTES,
    TASKS,
    Deletion,
    Task,
    days_to_compact,
    wants_checkpoint,
)
from platform_assets.planning.steps import bytes_among, whole_parts_of
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import DataFile, TableChange
from platform_assets.records.raw_rows import TOMBSTONE, WITHDRAWAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from platform_assets.spark.session.on_demand import SparkOnDemand


RELEASES = "_releases"
"""In place of a table's name: the table whose versions are the releases."""


_INGEST_WAIT_S = 5.0
"""How long the ingest of a raw table is waited for; it may take hours, and another time will do."""


@dataclass(frozen=True)
class ToCompact:
    """A day with too many small files.

    Args:
        small: files to merge, as paths from the table's folder.
    """

    table: str
    day: date
    small: tuple[str, ...]
    files: tuple[DataFile, ...]
    release: int

    @property
    def bytes(self) -> int:
        """Return the bytes of the files to merge."""
        return sum(file.size for file in self.files if file.path in self.small)


@dataclass(frozen=True)
class Maintenance:
    """Maintenance that is due, or was done.

    Args:
        busy: days that were not compacted because another process works on them, by table, and which.
        differing: days that were not compacted because their files hold other rows than published, by table.
        checkpoints: version of every log that gets a checkpoint, by table.
        deletions: files and folders of abandoned stages and old releases.
    """

    compaction: tuple[ToCompact, ...] = ()
    busy: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    differing: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    checkpoints: Mapping[str, int] = field(default_factory=dict)
    deletions: tuple[Deletion, ...] = ()

    def __add__(self, other: Maintenance) -> Maintenance:
        return Maintenance(
            (*self.compaction, *other.compaction),
            {**self.busy, **other.busy},
            {**self.differing, **other.differing},
            {**self.checkpoints, **other.checkpoints},
            (*self.deletions, *other.deletions),
        )


def plan_maintenance(platform: Platform, tasks: Collection[Task] = TASKS) -> Maintenance:
    """Return the maintenance that is due, without starting or changing anything."""
    gone = due_deletions(platform) if {"stages", "deletion"} & {*tasks} else ()
    return Maintenance(
        compaction=_to_compact(platform) if "compaction" in tasks else (),
        checkpoints=_to_sum_up(platform) if "checkpoints" in tasks else {},
        deletions=tuple(deletion for deletion in gone if deletion.task in tasks),
    )


def _to_compact(platform: Platform) -> tuple[ToCompact, ...]:
    due: list[ToCompact] = []
    held: defaultdict[str, set[date]] = defaultdict(set)
    silver = {contract.name: contract for contract in platform.catalogue if contract.layer == "silver"}
    for hold in platform.ledger.holds():
        held[hold.table].add(hold.day)
        if hold.table in silver:
            held[quarantine_table(hold.table)].add(hold.day)
    most = platform.settings.compaction_files
    small = min(SMALL_BYTES, platform.settings.part_bytes // 3)  # no part of a large day is, or it would be ever again
    now = platform.current_release()
    for table, version in now.versions.items():
        live = files_at(platform.lake, table, version)
        sizes = {day: {file.path: file.size for file in files} for day, files in live.items() if len(files) > most}
        crowded = days_to_compact(sizes, held[table], most, small)
        if table.startswith("raw."):
            path = platform.lake.table_path(table)
            kept = {
                day: _with_marks(path, [file for file in live[day] if file.path in names])
                for day, names in crowded.items()
            }
            sizes = {day: {p: size for p, size in sizes[day].items() if p not in kept[day]} for day in crowded}
            crowded = days_to_compact(sizes, (), most, small)
        due += [ToCompact(table, day, names, live[day], now.number) for day, names in crowded.items()]
    return tuple(due)


def _with_marks(path: Location, files: Collection[DataFile]) -> set[str]:
    """Return raw files with tombstones or withdrawals. They stay: a new file would announce new moves."""
    marks = {TOMBSTONE, WITHDRAWAL}
    may = (file.path for file in files if any(may_hold(file, "_kind", kind) for kind in marks))
    return {name for name in may if not marks.isdisjoint(_kinds_in(path / name))}


def _kinds_in(file: Location) -> set[str]:
    with opened(file) as parquet:
        batches = parquet.iter_batches(columns=["_kind"])
        return {kind for batch in batches for kind in batch.column(0).unique().to_pylist()}


def compact(
    platform: Platform, spark: SparkOnDemand, author: Author, progress: OnProgress = no_progress
) -> Maintenance:
    """Merge the small files of every day that has too many.

    Digest, fingerprint and figures stay. The digest is computed again from the new files before publication. Days that
    another process replaces meanwhile are left for the next time, like tables during ingestion.
    """
    platform.settle()
    with meanwhile(progress, "looking for small files"):
        due = _to_compact(platform)
    busy: dict[str, dict[date, str]] = {}
    differing: dict[str, tuple[date, ...]] = {}
    for table, of_table in groupby(due, lambda day: day.table):
        failpoint("compact.planned")
        days = tuple(of_table)
        with ExitStack() as locks:
            try:
                for raw in _ingested_with(platform, table):
                    locks.enter_context(ingest_lock(platform.lake, raw, _INGEST_WAIT_S))
            except LockTimeoutError:
                busy[table] = dict.fromkeys((day.day for day in days), "its raw table is being ingested into")
                continue
            failpoint("compact.locked")
            progress(Progress("compacting", table, 0, len(days)))
            for start in range(0, len(days), platform.settings.batch_days):
                batch = days[start : start + platform.settings.batch_days]
                others, met = _compact(platform, spark(), table, batch, author)
                if others:
                    differing[table] = (*differing.get(table, ()), *others)
                if met:
                    busy.setdefault(table, {}).update(dict.fromkeys(met, "it was published again in between"))
                progress(Progress("compacting", table, start + len(batch), len(days)))
        progress(Progress("compacting", table, len(days), len(days), finished=True))
    left = {(table, day) for some in (busy, differing) for table, of_table in some.items() for day in of_table}
    return Maintenance(tuple(day for day in due if (day.table, day.day) not in left), busy, differing)


def _ingested_with(platform: Platform, table: str) -> list[str]:
    """Return the raw table whose ingestion appends to a table: itself, or the one of refused or late rows."""
    layer, _, name = table.partition(".")
    raw = f"raw.{name}"
    return [raw] if layer in DELIVERED and raw in platform.catalogue.names else []


def _compact(
    platform: Platform, spark: SparkSession, table: str, days: Sequence[ToCompact], author: Author
) -> tuple[list[date], tuple[date, ...]]:
    """Compact one batch. Returns days whose files hold unexpected rows, and days published again in between."""
    from pyspark.sql.types import StructType

    from platform_assets.spark.compare.profiles import by_columns, digests_in_files
    from platform_assets.spark.tables.reading import read_files
    from platform_assets.spark.tables.staging import stage

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
        contents = {
            day.day: in_other_files(records[day.day], day.files, files[day.day], computed[day.day]) for day in equal
        }
        change = TableChange(table=table, schema_string=schema_string, days=contents)
        failpoint("compact.counted")
        met = _publish(LakeSnapshot(platform, now), publication, change, author)
        return [day.day for day in days if day.day not in contents], met


def _publish(snapshot: LakeSnapshot, publication: str, change: TableChange, author: Author) -> tuple[date, ...]:
    """Publish the compacted days. Returns the days that were published again in between, and left out."""
    platform = snapshot.platform

    def rest(met: Met, changes: Sequence[TableChange]) -> Rest:
        now = LakeSnapshot.now(platform)
        # Who computed a day anew that came out equal left its files, and recorded what it is made from.
        others = now.published_since(snapshot, change.table, change.days)
        return Rest({*replaced(met).left_out, *others}, now.number)

    met = publish_rest(platform, publication, "compact", [change], author, rest, on_release=snapshot.number)
    failpoint("compact.published")
    return met


def sum_up(platform: Platform) -> dict[str, int]:
    """Write due checkpoints; return the version of each, by table."""
    done: dict[str, int] = {}
    with publish_lock(platform.lake) as still_held:
        finish_pending(platform.lake, still_held)
        for table, version in _to_sum_up(platform).items():
            still_held()
            write_checkpoint(_path(platform, table), version)
            done[table] = version
    return done


def _path(platform: Platform, table: str) -> Location:
    return platform.lake.releases_path if table == RELEASES else platform.lake.table_path(table)


def _to_sum_up(platform: Platform) -> dict[str, int]:
    heads: dict[str, int] = {}
    for table in (*current_release(platform.lake).versions, RELEASES):
        path = _path(platform, table)
        head = commits.head_version(path)
        if wants_checkpoint(head, commits.checkpoint_hint(path)):
            heads[table] = head
    return heads


def maintain(
    platform: Platform,
    spark: SparkOnDemand,
    task: Task,
    author: Author,
    progress: OnProgress = no_progress,
) -> Maintenance:
    """Do one task. If killed at any moment, the next run continues."""
    match task:
        case "compaction":
            return compact(platform, spark, author, progress)
        case "checkpoints":
            with meanwhile(progress, "summing up logs"):
                return Maintenance(checkpoints=sum_up(platform))
        case "stages" | "deletion":
            with meanwhile(progress, "deleting unneeded files"):
                return Maintenance(deletions=delete_unneeded(platform, task))
