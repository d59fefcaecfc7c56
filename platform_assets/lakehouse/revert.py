"""Restore tables to what the release shows, after another tool changed them or a publication cannot be finished.

Undone changes stay in the tables' history; new commits undo them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from getpass import getuser
from os import getpid

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, table_snapshot
from platform_assets.lakehouse.delta.new_commit import (
    Entry,
    check_file,
    commit_difference,
    commit_metadata,
    restore_whole,
)
from platform_assets.lakehouse.errors import NeverPublishedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.publish import drop_torn, finish_pending, pending_of
from platform_assets.lakehouse.releases import (
    current_release,
    foreign_commits,
    manifest_file,
    write_release,
)
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import own_host, own_user
from platform_assets.records.manifest import Decides, Manifest, new_publication, platform_version


@dataclass(frozen=True)
class PutBack:
    """Result of restoring a table."""

    release: int
    lost: tuple[date, ...]


def undo_unreleased(lake: Lake, why: str = "", who: str | None = None) -> list[str]:
    """Restore every table to the release, if a publication began and cannot be finished.

    No reader has seen the undone part. Two publishers can leave each other such halves when they lose the publish lock
    and die; a lake that lost its newest releases looks the same, and then these should be restored instead.

    Returns:
        What was done, one sentence each; nothing where the release shows all that was begun.

    Raises:
        ForeignCommitError: another tool changed a table.
        DamagedTableError: a table is behind its release.
        StagedFileError: files of the released content are gone.
    """
    with publish_lock(lake) as still_held:
        drop_torn(lake, "_releases")
        now = current_release(lake)
        tables = sorted({*lake.table_names(), *now.versions})
        done = [sentence for table in tables for sentence in drop_torn(lake, table)]
        begun = {table: pending for table in tables if (pending := pending_of(lake, table, now))}
        if not begun:
            return done
        manifest = _written(lake, "recovery", why or "publications that could not be finished", who)
        versions = dict(now.versions)
        for table, publications in begun.items():
            still_held()
            path = lake.table_path(table)
            bad = table_snapshot(path)
            good = (
                table_snapshot(path, now.versions[table]) if table in now.versions else replace(bad, files={}, days={})
            )
            versions[table] = _put_back(lake, table, good, bad, manifest)
            done.append(f"Undid {', '.join(sorted(publications))} in {table}, which no release shows.")
        still_held()
        write_release(lake, now, versions, manifest)
        return done


def revert_foreign(lake: Lake, table: str, why: str = "", who: str | None = None) -> PutBack | None:
    """Restore a table that another tool changed to its released content, then finish unfinished publications.

    The foreign commits stay in the table's history; a new one undoes them. Files of the released content that the tool
    deleted stay part of their days: reading them is an error by name until a person restores the files or computes the
    days again.

    Returns:
        What was done; None if there was nothing to undo.

    Raises:
        NeverPublishedError: no release has the table.
        DamagedTableError: the foreign tool changed the table's Delta features, or its log is behind the release.
        StagedFileError: the foreign tool deleted files, and changed columns or properties too.
    """
    path = lake.table_path(table)
    with publish_lock(lake) as still_held:
        now = current_release(lake)
        if table not in now.versions:
            raise NeverPublishedError(
                f"{table} is in no release, so there is nothing to put it back to.",
                "Move its folder out of the lake if it does not belong there.",
            )
        drop_torn(lake, table)
        foreign = [c for c in commits.commits_after(path, now.versions[table]) if c.publication is None]
        if not foreign:
            return None
        good, bad = table_snapshot(path, now.versions[table]), table_snapshot(path)
        manifest = _written(lake, "put back", why or f"{table} was changed by {foreign[0].made_by}", who)
        still_held()
        lost = _lost(path, good)
        version = _put_back(lake, table, good, bad, manifest, {file for files in lost.values() for file in files})
        still_held()
        number = write_release(lake, now, now.versions | {table: version}, manifest).number
        finish_pending(lake, still_held, [table])
        return PutBack(number, tuple(sorted(lost)))


def _lost(path: Location, good: TableSnapshot) -> dict[date, set[str]]:
    lost: defaultdict[date, set[str]] = defaultdict(set)
    for name, day in good.days.items():
        if day is not None and not (path / name).exists():
            lost[day].add(name)
    return lost


def remove_foreign_releases(lake: Lake, why: str = "", who: str | None = None) -> int | None:
    """Remove other tools' commits from `_releases`; a new release, equal to the one before, records it.

    Readers never saw them. The commits are kept in `_releases/_foreign`, and their files stay in place.

    Returns:
        The number of the new release; None if there was nothing to take out.
    """
    path = lake.releases_path
    with publish_lock(lake) as still_held:
        drop_torn(lake, "_releases")
        foreign = foreign_commits(lake)
        if not foreign:
            return None
        manifest = _written(lake, "put back", why or f"_releases was changed by {foreign[0].made_by}", who)
        log = path / "_delta_log"
        # The newest first: a crash in between leaves no gap.
        for commit in reversed(foreign):
            still_held()
            kept = path / "_foreign" / f"{commit.version:020d}-{manifest.publication}.json"
            kept.replace(commits.commit_file(path, commit.version).read() or b"")
            for name in log.names():
                if name.startswith(f"{commit.version:020d}.") and name != f"{commit.version:020d}.json":
                    (log / name).remove()
            if commits.checkpoint_hint(path) >= commit.version:
                (log / "_last_checkpoint").remove()
            commits.commit_file(path, commit.version).remove()
        finish_pending(lake, still_held)
        now = current_release(lake)
        still_held()
        return write_release(lake, now, now.versions, manifest).number


def _put_back(
    lake: Lake,
    table: str,
    good: TableSnapshot,
    bad: TableSnapshot,
    manifest: Manifest,
    lost: Collection[str] = (),
) -> int:
    path = lake.table_path(table)
    removes = [_entry(bad, name) for name in sorted(bad.files.keys() - good.files.keys())]
    adds = [_entry(good, name) for name in sorted(good.files.keys() - bad.files.keys())]
    for file, values in adds:
        if file.path not in lost or good.metadata != bad.metadata:
            check_file(path, table, file, str(values[DAY]))
    if good.metadata != bad.metadata:
        return restore_whole(path, bad.version, good.version, commit_metadata(manifest))
    if not removes and not adds:
        return bad.version
    return commit_difference(path, bad.version, removes, adds, good.schema_string, commit_metadata(manifest), [DAY])


def _entry(snapshot: TableSnapshot, path: str) -> Entry:
    day = snapshot.days[path]
    return snapshot.files[path], {DAY: None if day is None else day.isoformat()}


def _written(lake: Lake, decides: Decides, why: str, who: str | None) -> Manifest:
    """Store and return the manifest of the restoration."""
    manifest = Manifest(
        publication=new_publication(),
        created_at=datetime.now(UTC),
        kind="roll back",
        run=f"process {getpid()}",
        who=who or getuser(),
        why=why,
        git_commit=None,
        tables=(),
        platform_version=platform_version(),
        as_user=own_user(),
        on_host=own_host(),
        decides=decides,
    )
    manifest_file(lake, manifest.publication).replace(manifest.model_dump_json().encode())
    return manifest
