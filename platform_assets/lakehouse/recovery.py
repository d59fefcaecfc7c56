"""Finishing what a dead publisher began, and putting back what somebody else's tool changed.

There is no journal: a table whose head is beyond the release says by its commits which publication is unfinished, and
that publication's manifest says the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from getpass import getuser
from os import getpid

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse import commits, storage
from platform_assets.lakehouse.chain import said_of
from platform_assets.lakehouse.difference import Entry, commit_difference, drop_torn_checkpoint, restore_whole
from platform_assets.lakehouse.errors import DamagedTableError, NeverPublishedError
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.lock import publish_lock
from platform_assets.lakehouse.log import Snapshot, head_of, snapshot
from platform_assets.lakehouse.manifest import Manifest, new_publication, platform_version
from platform_assets.lakehouse.releases import (
    Release,
    current_release,
    manifest_file,
    manifest_of,
    write_release,
)
from platform_assets.lakehouse.replace import changed_since, check_file, replace


def recover(lake: Lake, lock_url: str | None = None) -> list[str]:
    """Finish what dead publishers began.

    Every publisher does this by itself; call it to have readers see the result at once.

    Args:
        lake: the lake.
        lock_url: PostgreSQL that holds the publish lock; a file in the lake without it.

    Returns:
        What was done, one sentence each.

    Raises:
        ForeignCommitError: a table was changed by something else than a publication.
        LockTimeoutError: somebody is publishing all the time.
    """
    with publish_lock(lake, lock_url) as still_held:
        return finish_pending(lake, still_held)


def finish_pending(lake: Lake, still_held: Callable[[], None], targets: Collection[str] = ()) -> list[str]:
    """Finish what dead publishers began; to be called under the publish lock.

    Args:
        lake: the lake.
        still_held: raises if the lock was lost.
        targets: tables about to be published, which must not be somebody else's even if no release has them yet.

    Raises:
        ForeignCommitError: a table was changed by something else than a publication.
        DamagedTableError: a table is behind its release, or ahead by more than one dead publisher leaves.
    """
    done = _drop_torn(lake, "_releases")
    now = current_release(lake)
    pending: set[str] = set()
    for table in sorted({*lake.table_names(), *now.versions}):
        done += _drop_torn(lake, table)
        pending |= _pending(lake, table, now, table in targets)
    for publication in sorted(pending):
        manifest = manifest_of(lake, publication)
        if len(pending) > 1 or not _follows(lake, manifest, now):
            raise _ahead(lake, now, pending)
        failpoint("recover.found")
        number = finish(lake, manifest, still_held, now)
        failpoint("recover.finished")
        done.append(f"Finished publication {publication} as release {number}.")
    return done


def _follows(lake: Lake, manifest: Manifest, now: Release) -> bool:
    """Whether a publication was made from what the release shows, and its days are as it read them or left them."""
    for change in manifest.tables:
        if any(version > now.versions.get(table, -1) for table, version in change.reads.items()):
            return False
        path = lake.table_path(change.table)
        if changed_since(change, head_of(path)):
            return False
    return True


def _ahead(lake: Lake, now: Release, pending: Collection[str]) -> DamagedTableError:
    return DamagedTableError(
        f"Tables of {lake.root} are ahead of release {now.number}, by publications {', '.join(sorted(pending)[:3])}"
        f"{' and more' if len(pending) > 3 else ''}: this lake was copied while others published, or its newest "
        "releases are gone.",
        "Restore the newest releases if they are lost. Of a copy, `platform-assets backup FOLDER` makes a lake without "
        "what no release shows: work with that.",
    )


def finish(
    lake: Lake,
    manifest: Manifest,
    still_held: Callable[[], None],
    now: Release,
    heads: Mapping[str, Snapshot | None] | None = None,
) -> int:
    """Commit every table of a manifest that is not committed yet, then the release; under the publish lock.

    Args:
        lake: the lake.
        manifest: what to finish.
        still_held: raises if the lock was lost.
        now: the current release, read under the same lock before anything was decided.
        heads: of its tables, where they were read under the same lock.

    Returns:
        The number of the release.

    Raises:
        LockLostError: somebody else has published since.
    """
    versions = dict(now.versions)
    for change in manifest.tables:
        failpoint("publish.before_table")
        still_held()
        before = head_of(lake.table_path(change.table)) if heads is None else heads[change.table]
        versions[change.table] = replace(lake, change, manifest, before)
        failpoint("publish.after_table")
    failpoint("publish.before_release")
    still_held()
    number = write_release(lake, now, versions, manifest).number
    failpoint("publish.after_release")
    return number


def revert_foreign(
    lake: Lake, table: str, lock_url: str | None = None, why: str = "", who: str | None = None
) -> int | None:
    """Put a table that somebody else's tool changed back to its released content, then finish what was begun.

    The foreign commits stay in the table's history; a new one undoes them.

    Args:
        lake: the lake.
        table: `<layer>.<table>`.
        lock_url: PostgreSQL that holds the publish lock; a file in the lake without it.
        why: reason, for a person.
        who: decides; the user of this machine by default.

    Returns:
        The number of the release that has the table's new version; None if there was nothing to undo.

    Raises:
        NeverPublishedError: no release has the table.
        DamagedTableError: the foreign tool changed the table's Delta features, or its log is behind the release.
        StagedFileError: the foreign tool deleted files of the released content.
    """
    path = lake.table_path(table)
    with publish_lock(lake, lock_url) as still_held:
        now = current_release(lake)
        if table not in now.versions:
            raise NeverPublishedError(
                f"{table} is in no release, so there is nothing to put it back to.",
                "Move its folder out of the lake if nobody should have made it.",
            )
        _drop_torn(lake, table)
        foreign = [c for c in commits.commits_after(path, now.versions[table]) if c.publication is None]
        if not foreign:
            return None
        good, bad = snapshot(path, now.versions[table]), snapshot(path)
        publication = new_publication()
        manifest = Manifest(
            publication=publication,
            created_at=datetime.now(UTC),
            kind="roll back",
            run=f"process {getpid()}",
            who=who or getuser(),
            why=why or f"{table} was changed by {foreign[0].made_by}",
            git_commit=None,
            tables=(),
            platform_version=platform_version(),
        )
        storage.write(manifest_file(lake, publication), manifest.model_dump_json().encode())
        still_held()
        version = _put_back(lake, table, good, bad, manifest)
        still_held()
        number = write_release(lake, now, now.versions | {table: version}, manifest).number
        finish_pending(lake, still_held)
        return number


def _put_back(lake: Lake, table: str, good: Snapshot, bad: Snapshot, manifest: Manifest) -> int:
    path = lake.table_path(table)
    removes = [_entry(bad, name) for name in sorted(bad.files.keys() - good.files.keys())]
    adds = [_entry(good, name) for name in sorted(good.files.keys() - bad.files.keys())]
    for file, values in adds:
        check_file(path, table, file, str(values[DAY]))
    if good.metadata != bad.metadata:
        return restore_whole(path, bad.version, good.version, said_of(manifest))
    if not removes and not adds:
        return bad.version
    return commit_difference(path, bad.version, removes, adds, good.schema_string, said_of(manifest), [DAY])


def _entry(found: Snapshot, path: str) -> Entry:
    day = found.days[path]
    return found.files[path], {DAY: None if day is None else day.isoformat()}


def _pending(lake: Lake, table: str, now: Release, is_target: bool) -> set[str]:
    path = lake.table_path(table)
    released = now.versions.get(table, -1)
    if released >= 0 and not storage.exists(commits.commit_file(path, released)):
        raise DamagedTableError(
            f"{table} has no version {released}, which release {now.number} shows.",
            "The table's folder was deleted or replaced: restore it from a backup before publishing.",
        )
    found: set[str] = set()
    for commit in commits.commits_after(path, released):
        if commit.publication is None and released < 0 and not is_target:
            return set()  # a table of somebody else's that no release and no publication knows
        found.add(commits.require_ours(table, commit))
    return found


def _drop_torn(lake: Lake, table: str) -> list[str]:
    """Remove a last commit, or its checkpoint, that a power cut tore before it was forced to disk."""
    path = lake.releases_path if table == "_releases" else lake.table_path(table)
    head = commits.head_version(path)
    if head < 0:
        return []
    done = [f"Removed the torn checkpoint {head} of {table}."] if drop_torn_checkpoint(path, head) else []
    if not commits.is_torn(path, head):
        return done
    if table != "_releases" and head <= current_release(lake).versions.get(table, -1):
        return done  # released, so it was on disk once: that is damage to tell, not to hide
    failpoint("recover.before_torn")
    storage.remove(commits.commit_file(path, head))
    failpoint("recover.after_torn")
    return [*done, f"Removed the torn commit {head} of {table}."]
