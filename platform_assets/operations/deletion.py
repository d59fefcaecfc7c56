"""Deletion of what no release in the rollback window, pin or open stage needs.

Candidates are found without a lock and deleted under the publish lock, a slice at a time. Other processes may publish
in between; files that they refer to are left out. No commit refers to a deleted file, because a publication checks all
of its files under the same lock before its first commit; nor to a file that is being deleted, even if the lock was
lost, because deletion is announced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.engine.erasures import newest
from platform_assets.engine.platform import Platform
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import StillNeededError
from platform_assets.lakehouse.horizon import NO_CUT, Cut, announcement, horizon_of, write_horizon
from platform_assets.lakehouse.layout import LAYERS, Lake
from platform_assets.lakehouse.locks import is_staging, publish_lock
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.lakehouse.releases import Release, current_release, manifest_file, manifest_of, published, release
from platform_assets.lakehouse.staging_folders import forget_dead_holders, kept_by_processes
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.pins import pinned_releases
from platform_assets.operations.plan_record import ends_of
from platform_assets.operations.stages.store import open_stages
from platform_assets.planning.retention import (
    Deletion,
    FileUsage,
    RetainedReleases,
    StagingFolder,
    Task,
    deletion_of,
    kept_releases,
    needed_of,
)
from platform_assets.records.manifest import is_publication

Pins = Callable[[], Collection[int]]
"""Says which releases are pinned at the moment it is asked."""
FILES_AT_ONCE = 500
"""So many are deleted in some ten milliseconds, for which publishers wait."""


@dataclass(frozen=True)
class Usage:
    """Files of a lake that are needed at one moment.

    Args:
        now: that moment, UTC.
        heads: newest version of every table, up to which its log was read.
    """

    now: datetime
    kept: RetainedReleases
    heads: Mapping[str, int]
    uses: Mapping[str, FileUsage]
    folders: tuple[StagingFolder, ...]
    cut: Cut = NO_CUT


def usage(lake: Lake, window: timedelta, pins: Pins, now: datetime | None = None, cut: Cut = NO_CUT) -> Usage:
    """Look at a whole lake.

    Args:
        window: how long a release stays after it was replaced.
        pins: releases that stay for longer.
        now: the time, UTC; by default the earlier of the machine's clock and the file system's.
    """
    # The folders first: work staged after the listing is in none of them.
    now = now or _now(lake)
    listed = tuple(_folders(lake))
    current = current_release(lake).number
    kept, first = RetainedReleases(-1, -1), Release()
    if current >= 0:
        kept = kept_releases(released_at(lake, current), pins(), now, window, cut.before)
        first = release(lake, kept.first)
    pinned = {number: release(lake, number).versions for number in kept.pinned}
    shown_by = {publication: number for number, publication in published(lake)}
    heads: dict[str, int] = {}
    uses: dict[str, FileUsage] = {}
    for table in lake.table_names():
        path = lake.table_path(table)
        heads[table] = commits.head_version(path)
        at = {number: versions[table] for number, versions in pinned.items() if table in versions}
        uses[table] = _use(path, heads[table], first.versions.get(table, -1), kept, at, shown_by)
    published_in = {table: use.publications() for table, use in uses.items()}
    open_ones = {publication for stage in open_stages(lake) for publication in stage.folders} | kept_by_processes(lake)
    folders = (
        replace(
            folder,
            published=(there := folder.publication in published_in.get(folder.table, ())),
            in_use=folder.publication in open_ones or (not there and is_staging(lake, folder.publication)),
        )
        for folder in listed
    )
    return Usage(now, kept, heads, uses, tuple(folders), cut)


def _now(lake: Lake) -> datetime:
    """Return the earlier of two clocks: the file system may be on another machine and dates its files itself."""
    now = datetime.now(UTC)
    try:
        return min(now, lake.root.now())
    except OSError:
        return now  # nothing is deleted from a lake that cannot be written, or is not there


def released_at(lake: Lake, current: int) -> list[tuple[int, datetime]]:
    """Return number and time of every release up to the current one, oldest first."""
    times = (commits.commit(lake.releases_path, number).timestamp_ms for number in range(current + 1))
    return [(number, datetime.fromtimestamp(time / 1000, UTC)) for number, time in enumerate(times)]


def _use(
    path: Location,
    head: int,
    first: int,
    kept: RetainedReleases,
    pinned: Mapping[int, int],
    shown_by: Mapping[str, int],
) -> FileUsage:
    """Read a log once: a file is needed if it was live at the first kept release, or was added since."""
    added: set[str] = set()
    live: set[str] = set()
    needed: dict[str, int] = {}
    shown = kept.first
    for version in range(head + 1):
        leaving, entering = commits.files_changed(path, version)
        if version > first:
            shown = max(shown, shown_by.get(commits.commit(path, version).publication or "", 0) - 1)
        for file in leaving:
            live.discard(file)
            if version > first:
                needed[file] = shown
        new = set(entering)
        added |= new
        live |= new
    for number, at in pinned.items():
        for file in table_snapshot(path, at).files:
            needed[file] = max(number, needed.get(file, number))
    return FileUsage(frozenset(added), needed | dict.fromkeys(live, kept.current))


def _folders(lake: Lake) -> Iterator[StagingFolder]:
    for layer in sorted(LAYERS):
        for table in (lake.root / layer).folders():
            for folder in table.folders():
                if IDENTIFIER.fullmatch(table.name) and is_publication(folder.name):
                    written = folder.written()
                    files = folder.files()
                    yield StagingFolder(
                        table=f"{layer}.{table.name}",
                        publication=folder.name,
                        files={f"{folder.name}/{file}": seen.size for file, seen in files.items()},
                        written=max((seen.written for seen in files.values()), default=written),
                    )


def deletions(usage: Usage, safe_age: timedelta) -> tuple[Deletion, ...]:
    """Return the unneeded files of a lake, by table and publication."""
    gone = (
        deletion_of(folder, usage.uses.get(folder.table, FileUsage()), usage.now, safe_age) for folder in usage.folders
    )
    return tuple(deletion for deletion in gone if deletion)


def deletions_asked_for(
    lake: Lake, usage: Usage, publication: str, window: timedelta, safe_age: timedelta
) -> tuple[Deletion, ...]:
    """Return what deleting a staged publication would remove."""
    names = _staged_as(lake, publication)
    folders = [folder for folder in usage.folders if folder.publication in names]
    if not folders:
        raise StillNeededError(
            f"No table has files of publication {publication!r}.",
            "`platform-assets status releases` lists publications; what was deleted before needs no deletion.",
        )
    _refuse_needed(lake, usage, folders, window)
    gone = deletions(replace(usage, folders=tuple(folders)), safe_age)
    for folder in folders:
        if folder.table not in {deletion.table for deletion in gone}:
            written = f"last written {folder.written:%Y-%m-%d %H:%M} UTC"
            if stage := next((one.name for one in open_stages(lake) if publication in one.folders), None):
                raise StillNeededError(
                    f"The stage {stage} is open and has {publication} of {folder.table}.", ends_of(lake, stage)
                )
            doing = "a process is working on it" if folder.in_use else written
            raise StillNeededError(
                f"{publication} is staged in {folder.table} and not published, {doing}.",
                f"Wait until it was not written to for {safe_age.days} days (`stage_safe_days`).",
            )
    return gone


def _staged_as(lake: Lake, publication: str) -> set[str]:
    """Return the names of a publication's staging folders: one for each batch of each table."""
    if not manifest_file(lake, publication).exists():
        return {publication}
    contents = [content for change in manifest_of(lake, publication).tables for content in change.days.values()]
    computed = (content for content in contents if not content.restores)
    entered = {file.path for content in computed for file in content.files if file.path not in content.base}
    return {publication, *(path.split("/", 1)[0] for path in entered)}


def delete(lake: Lake, usage: Usage, gone: Sequence[Deletion], pins: Pins) -> list[Deletion]:
    """Delete files and folders. If killed, the next deletion continues.

    Returns:
        What was deleted: less than asked for, if a publication has referred to some of it since.

    Raises:
        LockLostError: the lock was lost before a slice was begun; what was deleted before it is gone.
    """
    done: list[Deletion] = []
    for some in _slices(gone):
        with publish_lock(lake) as still_held:
            failpoint("delete.locked")
            finish_pending(lake, still_held)
            kept = _kept_now(lake, usage.kept, pins, usage.cut)
            protected = _protected_since(lake, usage, kept)
            todo = [left for deletion in some if (left := _without(deletion, protected.get(deletion.table, set())))]
            if any(deletion.is_history for deletion in todo):
                _move_horizon(lake, kept, usage.cut, still_held)
            with announcement(lake, _paths(todo), still_held):
                for deletion in todo:
                    _delete(lake, deletion)
            done += todo
        failpoint("delete.done")
    return done


def _refuse_needed(lake: Lake, usage: Usage, folders: Iterable[StagingFolder], window: timedelta) -> None:
    for folder in folders:
        needed = needed_of(folder, usage.uses.get(folder.table, FileUsage()))
        if needed is None:
            continue
        count, number = needed
        stage = next((one.name for one in open_stages(lake) if one.release == number), None)
        if number == usage.kept.current:
            what, todo = "the current one", "Replace the days first: what readers see is never deleted."
        elif number in usage.kept.pinned and stage:
            what, todo = f"which lies under the open stage {stage}", ends_of(lake, stage)
        elif number in usage.kept.pinned:
            what, todo = "which is pinned", f"Unpin release {number} first."
        else:
            until = released_at(lake, number + 1)[-1][1] + window
            what = f"which is inside the rollback window until {until:%Y-%m-%d %H:%M} UTC at least"
            todo = "Wait until then, or shorten `rollback_window_days` for all releases."
        files = f"{count:,} of the {len(folder.files):,} files of {folder.publication} in {folder.table}"
        raise StillNeededError(f"Release {number}, {what}, needs {files}.", todo)


def _kept_now(lake: Lake, kept: RetainedReleases, pins: Pins, cut: Cut) -> RetainedReleases:
    """Add releases pinned since, if they are still whole."""
    whole = horizon_of(lake)
    new = {pin for pin in pins() if 0 <= pin < kept.first and pin >= cut.before and whole.has(pin)}
    return replace(kept, pinned=tuple(sorted({*kept.pinned, *new})))


def _protected_since(lake: Lake, usage: Usage, kept: RetainedReleases) -> dict[str, set[str]]:
    """Return files that became needed or pinned after the candidates were found."""
    protected: dict[str, set[str]] = {}
    for table in lake.table_names():
        path, head = lake.table_path(table), usage.heads.get(table, -1)
        new = range(head + 1, commits.head_version(path) + 1)
        protected[table] = {file for version in new for file in commits.files_changed(path, version)[1]}
    for number in sorted({*kept.pinned} - {*usage.kept.pinned}):
        for table, version in release(lake, number).versions.items():
            protected[table] |= table_snapshot(lake.table_path(table), version).files.keys()
    return protected


def _without(deletion: Deletion, protected: set[str]) -> Deletion | None:
    if not protected & deletion.files.keys():
        return deletion
    left = {path: size for path, size in deletion.files.items() if path not in protected}
    return None if deletion.orphan or not left else replace(deletion, files=left, whole=False)


def _paths(gone: Iterable[Deletion]) -> dict[str, set[str]]:
    paths: dict[str, set[str]] = {}
    for deletion in gone:
        paths.setdefault(deletion.table, set()).update(deletion.files)
    return paths


def _move_horizon(lake: Lake, kept: RetainedReleases, cut: Cut, still_held: Callable[[], None]) -> None:
    before = horizon_of(lake)
    after = before.moved(kept.first, kept.pinned, datetime.now(UTC), cut)
    if (before.before, before.kept, before.cut) != (after.before, after.kept, after.cut):
        failpoint("delete.before_horizon")
        write_horizon(lake, after, still_held)
        failpoint("delete.after_horizon")


def _delete(lake: Lake, deletion: Deletion) -> None:
    """Delete exactly the announced files. If interrupted, the next run finds the rest by the folder."""
    path = lake.table_path(deletion.table)
    for file in deletion.files:
        (path / file).remove(durable=False)
        failpoint("delete.after_file")
    if deletion.whole:
        failpoint("delete.before_folder")
        (path / deletion.publication).tidy()
        failpoint("delete.after_folder")
        return
    for folder in {(path / file).parent for file in deletion.files}:
        folder.tidy()


def _slices(gone: Sequence[Deletion]) -> Iterator[list[Deletion]]:
    """Yield some whole removals at a time, so that no publisher waits long."""
    some: list[Deletion] = []
    for deletion in gone:
        some.append(deletion)
        if sum(len(each.files) for each in some) >= FILES_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def due_deletions(platform: Platform) -> tuple[Deletion, ...]:
    """Return the files that are unneeded now."""
    return deletions(_usage(platform), _safe_age(platform))


def delete_unneeded(platform: Platform, task: Task) -> tuple[Deletion, ...]:
    """Delete unneeded files of old releases or of abandoned stages."""
    platform.settle()
    if task == "stages":
        forget_dead_holders(platform.lake)
    needed = _usage(platform)
    gone = [deletion for deletion in deletions(needed, _safe_age(platform)) if deletion.task == task]
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def delete_before(platform: Platform, cut: Cut, tables: Collection[str]) -> tuple[Deletion, ...]:
    """Delete files that only releases before an erasure needed, even within the rollback window and in pinned releases.

    Staged files of dead processes for these tables are deleted too, however young they are.

    Args:
        tables: tables whose rows were erased, and tables computed from them.
    """
    platform.settle()
    forget_dead_holders(platform.lake)
    needed = usage(platform.lake, _window(platform), lambda: _pinned(platform), cut=cut)
    gone = [deletion for deletion in deletions(needed, timedelta(0)) if deletion.table in tables or not deletion.orphan]
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def delete_publication(platform: Platform, publication: str, *, dry_run: bool = False) -> tuple[Deletion, ...]:
    """Delete the files of one publication, if they are unneeded."""
    platform.settle()
    needed = _usage(platform)
    gone = deletions_asked_for(platform.lake, needed, publication, _window(platform), _safe_age(platform))
    if dry_run:
        return gone
    return tuple(delete(platform.lake, needed, gone, lambda: _pinned(platform)))


def _usage(platform: Platform) -> Usage:
    return usage(platform.lake, _window(platform), lambda: _pinned(platform), cut=_cut(platform))


def _cut(platform: Platform) -> Cut:
    """Return where the newest erasure cut history, or still has to because it was killed."""
    cut, erased = horizon_of(platform.lake).cut, newest(platform)
    if erased is None or erased.release <= cut.before:
        return cut
    return Cut(before=erased.release, publication=erased.publication)


def _pinned(platform: Platform) -> tuple[int, ...]:
    """Return releases kept by pins or as the base of an open stage."""
    return (*pinned_releases(platform.ledger), *(stage.release for stage in open_stages(platform.lake)))


def _window(platform: Platform) -> timedelta:
    return timedelta(days=platform.settings.rollback_window_days)


def _safe_age(platform: Platform) -> timedelta:
    return timedelta(days=platform.settings.stage_safe_days)
