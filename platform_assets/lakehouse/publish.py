"""`publish`: make a publication visible, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, head_of
from platform_assets.lakehouse.delta.schema import check_columns
from platform_assets.lakehouse.errors import (
    Conflict,
    InterruptedPublicationError,
    LakeError,
    LockLostError,
    ManifestError,
    OvertakenError,
    lock_lost_to,
)
from platform_assets.lakehouse.horizon import require_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import PUBLISH_TIMEOUT_S, publish_lock
from platform_assets.lakehouse.recovery import finish, finish_pending
from platform_assets.lakehouse.releases import (
    Release,
    current_release,
    manifest_bytes,
    manifest_file,
    newest_release,
    parsed,
    released_as,
)
from platform_assets.lakehouse.replace import changed_since
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
    """Replace the days of a manifest in all its tables and show the result in one release.

    Idempotent: a publication that was released already, by this process or by whoever finished it, is not released
    again.

    Args:
        manifest: what to publish; its files are staged already.
        permit: called under the lock, just before anything is changed; raises what forbids it.

    Returns:
        The number of the release that shows it.

    Raises:
        Conflict: days, or all that they were made from, were replaced by somebody else since they were read; nothing
            was published.
        OvertakenError: another release is current than it was made for; nothing was published.
        ForeignCommitError: a table was changed by something else than a publication.
        SchemaMismatchError: files have other columns than their table and may not bring them; nothing was published.
        StagedFileError: a file is missing, short, misplaced or being deleted; nothing was published.
        ManifestError: the manifest names a table twice, or another one has its name.
        LockTimeoutError: somebody else held the lock for too long.
        LockLostError: somebody else has published since a lock was taken; nothing was published.
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
            # Whoever has published since the lock was lost has finished what was begun here.
            if isinstance(error, LockLostError) and (number := released_as(lake, manifest, after)) is not None:
                return number
            if not _begun(lake, manifest, heads):
                raise
            raise InterruptedPublicationError(
                f"Publication {manifest.publication} failed after its first commit: "
                f"{error.what if isinstance(error, LakeError) else error}",
                "Remove the cause and publish again, or run `platform-assets recover`: either finishes it. "
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
    """Store a manifest; whether it was not stored yet, so that nobody can have released it before."""
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
    """Return the files that enter, and the folders that hold them, up to the table's own; the lake's for a new table.

    None of a rollback: what it puts back was forced to disk when it was published.
    """
    staged: set[Location] = set()
    if manifest.kind == ROLL_BACK:
        return []
    for change in manifest.tables:
        root = lake.table_path(change.table)
        if root.exists() and commits.head_version(root) < 0:
            staged |= {root.parent, lake.root}  # made with the first staged file, by nobody who syncs
        for content in change.days.values():
            for path in {file.path for file in content.files} - set(content.base):
                file = root / path
                staged |= {file, file.parent, file.parent.parent, root}
    return sorted(staged)


def _require_unchanged(lake: Lake, manifest: Manifest) -> dict[str, TableSnapshot | None]:
    """Check all tables before the first is touched; returns their heads."""
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
    """Return whether a table that days were made from was reloaded since, or rows of it erased, which stay away."""
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
