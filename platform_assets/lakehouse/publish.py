"""Make a publication visible, all of it or nothing, and finish what a dead publisher began.

There is no journal: the commits of a table whose head is beyond the release name the unfinished publication, and that
publication's manifest has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, head_of
from platform_assets.lakehouse.delta.new_commit import changed_since, drop_torn_checkpoint, replace
from platform_assets.lakehouse.delta.schema import check_columns
from platform_assets.lakehouse.errors import (
    Conflict,
    DamagedTableError,
    InterruptedPublicationError,
    LakeError,
    LockLostError,
    ManifestError,
    OvertakenError,
    StagedFileError,
    lock_lost_to,
)
from platform_assets.lakehouse.horizon import require_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import PUBLISH_TIMEOUT_S, publish_lock
from platform_assets.lakehouse.releases import (
    Release,
    current_release,
    foreign_commits,
    manifest_bytes,
    manifest_file,
    manifest_of,
    newest_release,
    parsed,
    released_as,
    write_release,
)
from platform_assets.lakehouse.storage.location import Location, sync
from platform_assets.records.history import ERASURE, RELOAD, ROLL_BACK
from platform_assets.records.manifest import Manifest

__all__ = ["Conflict", "OvertakenError", "publish"]


def publish(
    lake: Lake,
    manifest: Manifest,
    *,
    timeout_s: float = PUBLISH_TIMEOUT_S,
    permit: Callable[[], None] = lambda: None,
) -> int:
    """Replace the days of a manifest in all its tables, in one release, and return its number.

    Idempotent: a publication that any process has released already is not released again.

    Args:
        manifest: the publication; its files are staged already.
        permit: called under the lock, just before anything is changed; raises to forbid it.

    Raises:
        Conflict: another publication replaced these days, or days that they read, after they had been read.
        OvertakenError: the current release is not the one that it was computed over.
        ForeignCommitError, SchemaMismatchError, StagedFileError, ManifestError, LockTimeoutError, LockLostError:
            a table, a file, the manifest or the lock is not as it should be; as above, nothing was published.
        InterruptedPublicationError: it failed half-way; the next publisher finishes it.
    """
    _check(manifest)
    require_files(lake, manifest)
    failpoint("publish.before_manifest")
    before = newest_release(lake)
    after = before if _write(lake, manifest) else -1
    failpoint("publish.written")
    sync(_staged(lake, manifest))
    failpoint("publish.after_manifest")
    with publish_lock(lake, timeout_s) as still_held:
        failpoint("publish.locked")
        finish_pending(lake, still_held, [change.table for change in manifest.tables])
        now = current_release(lake)
        if (number := released_as(lake, manifest, after)) is not None:
            return number
        if manifest.on_release is not None and manifest.on_release != now.number:
            raise OvertakenError(manifest.on_release, now.number)
        _require_versions(lake, now, manifest.on_versions)
        heads = _require_unchanged(lake, manifest)
        # Once more: files of before, put back by a rollback, may have been deleted since, or be going.
        require_files(lake, manifest)
        permit()
        failpoint("publish.checked")
        try:
            return finish(lake, manifest, still_held, now, heads)
        except Exception as error:
            # A publisher that took the lock since has finished what was begun here.
            if isinstance(error, LockLostError) and (number := released_as(lake, manifest, after)) is not None:
                return number
            if not _begun(lake, manifest, heads):
                raise
            raise InterruptedPublicationError(
                f"Publication {manifest.publication} failed after its first commit: "
                f"{error.what if isinstance(error, LakeError) else error}",
                "Remove the cause and publish again, or run `platform-assets admin recover`: either finishes it. "
                "Keep its staged files.",
            ) from error


def _require_versions(lake: Lake, now: Release, on_versions: Mapping[str, int]) -> None:
    for table, version in on_versions.items():
        if (current := now.versions.get(table, -1)) != version:
            made_by = commits.require_ours(table, commits.commit(lake.table_path(table), current))
            raise lock_lost_to(table, current, made_by)


def _check(manifest: Manifest) -> None:
    names = [change.table for change in manifest.tables]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ManifestError(
            f"Publication {manifest.publication} changes {', '.join(sorted(twice))} twice.",
            "Merge the days of a table into one TableChange.",
        )


def _write(lake: Lake, manifest: Manifest) -> bool:
    """Store a manifest. Return whether it is new: then no process can have released it before."""
    file = manifest_file(lake, manifest.publication)
    content = manifest.model_dump_json().encode()
    if file.write_new(content):
        return True
    if parsed(lake, manifest.publication, manifest_bytes(lake, manifest.publication)) != manifest:
        raise ManifestError(
            f"Another manifest of publication {manifest.publication} exists: {file}.",
            "Give every publication its own name, as new_publication() makes them.",
        )
    return False


def _staged(lake: Lake, manifest: Manifest) -> list[Location]:
    """Return new files, and their folders up to the table's own; up to the lake's for a new table.

    None for a rollback: its files were forced to disk when they were published.
    """
    staged: set[Location] = set()
    if manifest.kind == ROLL_BACK:
        return []
    for change in manifest.tables:
        root = lake.table_path(change.table)
        if root.exists() and commits.head_version(root) < 0:
            staged |= {root.parent, lake.root}  # made with the first staged file, and not synced then
        for content in change.days.values():
            for path in {file.path for file in content.files} - set(content.base):
                file = root / path
                staged |= {file, file.parent, file.parent.parent, root}
    return sorted(staged)


def _require_unchanged(lake: Lake, manifest: Manifest) -> dict[str, TableSnapshot | None]:
    """Check all tables before the first is changed; return their heads."""
    heads: dict[str, TableSnapshot | None] = {}
    conflicts: dict[str, tuple[date, ...]] = {}
    for change in manifest.tables:
        path = lake.table_path(change.table)
        heads[change.table] = head = head_of(path)
        check_columns(path, change, head)
        if days := changed_since(change, head):
            conflicts[change.table] = tuple(days)
    if _reloaded_since(lake, manifest):
        # Days that read one another in the same publication: none of them holds without the others.
        conflicts = {change.table: tuple(change.days) for change in manifest.tables}
    if conflicts:
        raise Conflict(conflicts)
    return heads


def _reloaded_since(lake: Lake, manifest: Manifest) -> bool:
    """Return whether an upstream table was reloaded since, or rows of it erased, which must not come back."""
    read = {(table, version) for change in manifest.tables for table, version in change.reads.items() if version >= 0}
    return any(
        commit.kind in (RELOAD, ERASURE)
        for table, version in sorted(read)
        for commit in commits.commits_after(lake.table_path(table), version)
    )


def _begun(lake: Lake, manifest: Manifest, heads: Mapping[str, TableSnapshot | None]) -> bool:
    return any(
        commit.publication == manifest.publication
        for table, head in heads.items()
        for commit in commits.commits_after(lake.table_path(table), head.version if head else -1)
    )


def recover(lake: Lake) -> list[str]:
    """Finish what dead publishers began.

    Every publisher does this by itself; call it to show readers the result at once.

    Returns:
        What was done, one sentence each.

    Raises:
        ForeignCommitError: another tool changed a table.
        LockTimeoutError: other processes held the lock all the time.
    """
    with publish_lock(lake) as still_held:
        return finish_pending(lake, still_held)


def finish_pending(lake: Lake, still_held: Callable[[], None], targets: Collection[str] | None = None) -> list[str]:
    """Finish what dead publishers began; call it under the publish lock.

    Args:
        targets: tables about to be published; foreign commits on other tables are ignored. Without them, all tables
            must be as publications left them.
    """
    done = drop_torn(lake, "_releases")
    for foreign in foreign_commits(lake):
        commits.require_ours("_releases", foreign)
    now = current_release(lake)
    pending: set[str] = set()
    for table in sorted({*lake.table_names(), *now.versions}):
        done += drop_torn(lake, table)
        pending |= pending_of(lake, table, now, targets)
    for publication in sorted(pending):
        manifest = manifest_of(lake, publication)
        for change in manifest.tables:
            pending_of(lake, change.table, now, [change.table])
        if len(pending) > 1 or not _follows(lake, manifest, now):
            raise _ahead(lake, now, pending)
        failpoint("recover.found")
        number = finish(lake, manifest, still_held, now)
        failpoint("recover.finished")
        done.append(f"Finished publication {publication} as release {number}.")
    return done


def _follows(lake: Lake, manifest: Manifest, now: Release) -> bool:
    """Return whether a publication was computed over the present release, and its files and days are unchanged."""
    if manifest.on_release not in (None, now.number):
        return False
    if any(now.versions.get(table, -1) != version for table, version in manifest.on_versions.items()):
        return False
    for change in manifest.tables:
        if any(version > now.versions.get(table, -1) for table, version in change.reads.items()):
            return False
        path = lake.table_path(change.table)
        if changed_since(change, head_of(path)):
            return False
    return _is_whole(lake, manifest)


def _is_whole(lake: Lake, manifest: Manifest) -> bool:
    """Return whether its files exist: a process that committed after losing the lock may refer to deleted ones."""
    try:
        require_files(lake, manifest)
    except StagedFileError:
        return False
    return True


def _ahead(lake: Lake, now: Release, pending: Collection[str]) -> DamagedTableError:
    return DamagedTableError(
        f"Tables of {lake.root} are ahead of release {now.number}, by publications {', '.join(sorted(pending)[:3])}"
        f"{' and more' if len(pending) > 3 else ''}: its newest releases are gone, it was copied while others "
        "published, publishers lost their lock and died, or a store did what it had said that it failed to do.",
        "Restore the newest releases if they are lost. If not, `platform-assets admin recover --undo` puts the "
        "tables back "
        f"to what release {now.number} shows; `platform-assets admin backup FOLDER` makes a lake of that elsewhere.",
    )


def finish(
    lake: Lake,
    manifest: Manifest,
    still_held: Callable[[], None],
    now: Release,
    heads: Mapping[str, TableSnapshot | None] | None = None,
) -> int:
    """Commit the remaining tables of a manifest, then the release; call it under the publish lock.

    Returns:
        The number of the release.
    """
    versions = dict(now.versions)
    for change in manifest.tables:
        failpoint("publish.before_table")
        still_held()
        before = head_of(lake.table_path(change.table)) if heads is None else heads[change.table]
        _require_none_but(lake, change.table, manifest.publication, now, before)
        versions[change.table] = replace(lake, change, manifest, before)
        failpoint("publish.after_table")
    failpoint("publish.before_release")
    still_held()
    number = write_release(lake, now, versions, manifest).number
    failpoint("publish.after_release")
    return number


def _require_none_but(lake: Lake, table: str, publication: str, now: Release, before: TableSnapshot | None) -> None:
    """Refuse a release with half of another publication, whose publisher believes it has the lock too."""
    for commit in commits.commits_after(lake.table_path(table), now.versions.get(table, -1)):
        other = commits.require_ours(table, commit)
        if other != publication and before is not None and commit.version <= before.version:
            raise lock_lost_to(table, commit.version, other)


def pending_of(lake: Lake, table: str, now: Release, targets: Collection[str] | None = None) -> set[str]:
    """Return the publications that have committed to a table and are in no release yet."""
    path = lake.table_path(table)
    released = now.versions.get(table, -1)
    if released >= 0 and not commits.has_commit(path, released):
        raise DamagedTableError(
            f"{table} has no version {released}, which release {now.number} shows.",
            "The table's folder was deleted or replaced: restore it from a backup before publishing.",
        )
    after = list(commits.commits_after(path, released))
    is_ours = released >= 0 or any(commit.publication for commit in after)
    if table in targets if targets is not None else is_ours:
        for commit in after:
            commits.require_ours(table, commit)
    return {commit.publication for commit in after if commit.publication is not None}


def drop_torn(lake: Lake, table: str) -> list[str]:
    """Remove a table's last commit, or its checkpoint, if a power cut tore it before it was forced to disk."""
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
    commits.commit_file(path, head).remove()
    failpoint("recover.after_torn")
    return [*done, f"Removed the torn commit {head} of {table}."]
