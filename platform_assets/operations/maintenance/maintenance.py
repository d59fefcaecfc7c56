"""What maintenance would do now, and all of it that needs no Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.day_contents import files_at
from platform_assets.engine.erasures import newest
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.new_commit import write_checkpoint
from platform_assets.lakehouse.delta.statistics import may_hold
from platform_assets.lakehouse.horizon import Cut, horizon_of
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.lakehouse.releases import current_release
from platform_assets.lakehouse.staging_folders import forget_dead_holders
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.operations.maintenance.deletion import Usage, delete, deletions, deletions_asked_for, usage
from platform_assets.operations.pins import pinned_releases
from platform_assets.operations.stages.store import open_stages
from platform_assets.planning.retention import SMALL_BYTES, TASKS, Deletion, Task, days_to_compact, wants_checkpoint
from platform_assets.records.manifest import DataFile
from platform_assets.records.raw_rows import TOMBSTONE, WITHDRAWAL

RELEASES = "_releases"
"""In place of a table's name: the table whose versions are the releases."""


@dataclass(frozen=True)
class ToCompact:
    """A day with too many small files.

    Args:
        small: the files that become one, paths from the table's folder.
    """

    table: str
    day: date
    small: tuple[str, ...]
    files: tuple[DataFile, ...]
    release: int

    @property
    def bytes(self) -> int:
        """Return the bytes of the files that become one."""
        return sum(file.size for file in self.files if file.path in self.small)


@dataclass(frozen=True)
class Maintenance:
    """What maintenance does, would do, or did.

    Args:
        checkpoints: version of every log that is summed up, by table.
        deletions: files and folders, of stages that were left behind and of history.
        busy: days that were not compacted because somebody else works on them, by table, and who.
        differing: days that were not compacted because their files hold other rows than were published, by table.
    """

    compaction: tuple[ToCompact, ...] = ()
    checkpoints: Mapping[str, int] = field(default_factory=dict)
    deletions: tuple[Deletion, ...] = ()
    busy: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    differing: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    def __add__(self, other: Maintenance) -> Maintenance:
        return Maintenance(
            (*self.compaction, *other.compaction),
            {**self.checkpoints, **other.checkpoints},
            (*self.deletions, *other.deletions),
            {**self.busy, **other.busy},
            {**self.differing, **other.differing},
        )


def plan_maintenance(platform: Platform, tasks: Collection[Task] = TASKS) -> Maintenance:
    """Return what is to be done now; starts nothing and changes nothing."""
    gone = deletions(_usage(platform), _safe_age(platform)) if {"stages", "deletion"} & {*tasks} else ()
    return Maintenance(
        compaction=_to_compact(platform) if "compaction" in tasks else (),
        checkpoints=_to_sum_up(platform) if "checkpoints" in tasks else {},
        deletions=tuple(deletion for deletion in gone if deletion.task in tasks),
    )


def sum_up(platform: Platform) -> dict[str, int]:
    """Write checkpoints where enough was committed since the last; the version of each, by table."""
    done: dict[str, int] = {}
    with publish_lock(platform.lake) as still_held:
        finish_pending(platform.lake, still_held)
        for table, version in _to_sum_up(platform).items():
            still_held()
            write_checkpoint(_path(platform, table), version)
            done[table] = version
    return done


def delete_unneeded(platform: Platform, task: Task) -> tuple[Deletion, ...]:
    """Delete what nobody needs: of history, or of stages that were left behind.

    Args:
        task: `deletion` or `stages`.
    """
    platform.settle()
    if task == "stages":
        forget_dead_holders(platform.lake)
    needed = _usage(platform)
    gone = [deletion for deletion in deletions(needed, _safe_age(platform)) if deletion.task == task]
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def delete_before(platform: Platform, cut: Cut, tables: Collection[str]) -> tuple[Deletion, ...]:
    """Delete what only releases before an erasure needed, whatever the window and pins would keep.

    What was staged for the tables and left by a dead process goes, too, however young it is.

    Args:
        tables: whose rows were erased, and what is made from them.
    """
    platform.settle()
    forget_dead_holders(platform.lake)
    needed = usage(platform.lake, _window(platform), lambda: _pinned(platform), cut=cut)
    gone = [deletion for deletion in deletions(needed, timedelta(0)) if deletion.table in tables or not deletion.orphan]
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def delete_publication(platform: Platform, publication: str, *, dry_run: bool = False) -> tuple[Deletion, ...]:
    """Delete the files of one publication, if nobody needs them."""
    platform.settle()
    needed = _usage(platform)
    gone = deletions_asked_for(platform.lake, needed, publication, _window(platform), _safe_age(platform))
    if dry_run:
        return gone
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def _usage(platform: Platform) -> Usage:
    return usage(platform.lake, _window(platform), lambda: _pinned(platform), cut=_cut(platform))


def _cut(platform: Platform) -> Cut:
    """Return where the newest erasure cut history, or has yet to, because it was killed."""
    cut, erased = horizon_of(platform.lake).cut, newest(platform)
    if erased is None or erased.release <= cut.before:
        return cut
    return Cut(before=erased.release, publication=erased.publication)


def _pinned(platform: Platform) -> tuple[int, ...]:
    """Return releases that stay because somebody pinned them, or because an open stage lies over them."""
    return (*pinned_releases(platform.ledger), *(stage.release for stage in open_stages(platform.lake)))


def _window(platform: Platform) -> timedelta:
    return timedelta(days=platform.settings.rollback_window_days)


def _safe_age(platform: Platform) -> timedelta:
    return timedelta(days=platform.settings.stage_safe_days)


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
    """Return raw files that say that records moved away, or back: they stay, since new ones tell of new moves."""
    marks = {TOMBSTONE, WITHDRAWAL}
    may = (file.path for file in files if any(may_hold(file, "_kind", kind) for kind in marks))
    return {name for name in may if not marks.isdisjoint(_kinds_in(path / name))}


def _kinds_in(file: Location) -> set[str]:
    with opened(file) as parquet:
        batches = parquet.iter_batches(columns=["_kind"])
        return {kind for batch in batches for kind in batch.column(0).unique().to_pylist()}
