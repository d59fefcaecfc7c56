"""`replace`, the one operation that changes a live table: one commit that removes and adds files.

Publishing, rolling back, emptying a day and compacting it are all the same: some days get other files.

deltalake would compute such a difference itself in `overwrite` mode, and then empties tables, doubles days or keeps
both contents, depending on the filter. So the mode is `append`, without filters and retries, and the caller compares
with the live files first. Only a commit with other columns has to overwrite, and names the days that it replaces whole.

It is imported by who commits: commands that only read import this module, and answer sooner without.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, drop_marks
from platform_assets.lakehouse.delta.schema import check_columns, types_in
from platform_assets.lakehouse.errors import ForeignCommitError, StagedFileError, lock_lost_to
from platform_assets.lakehouse.layout import Lake, table_name
from platform_assets.lakehouse.storage.location import Location, sync
from platform_assets.places import is_object_store
from platform_assets.records.manifest import DataFile, Manifest, TableChange

if TYPE_CHECKING:
    from deltalake import CommitProperties, PostCommitHookProperties
    from deltalake.transaction import RemoveAction

CHECKPOINT_INTERVAL = 20
"""Commits between two checkpoints."""

CONFIGURATION = {
    # Spark refuses a pinned version by its own age and VACUUM deletes open stages: only our maintenance deletes.
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
}

Entry = tuple[DataFile, Mapping[str, str | None]]
"""A file and its partition values."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def commit_difference(
    table_path: Location,
    head: int,
    removes: Sequence[Entry],
    adds: Sequence[Entry],
    schema_string: str,
    said: Mapping[str, str],
    partition_by: Sequence[str],
    *,
    new_columns: bool = False,
) -> int:
    """Commit removes and adds on the version just read, force the commit to disk, and return the new version.

    Args:
        head: version of the difference's base; -1 makes the table.
        said: metadata of the commit, from `commit_metadata`.
        new_columns: whether the schema differs from the table's, and is committed with the files; all live files of a
            changed day are removed.
    """
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, create_table_with_add_actions

    schema = Schema.from_json(schema_string)
    properties, hooks = _properties(said)
    entering = [AddAction(f.path, f.size, values, f.modified_ms, True, f.stats) for f, values in adds]
    failpoint("replace.before_commit")
    with errors_numbered(table_path), _only_on(table_path, head, said[commits.PUBLICATION]):
        if head < 0:
            table_path.make()
            create_table_with_add_actions(
                str(table_path),
                schema,
                entering,
                mode="error",
                partition_by=list(partition_by),
                configuration=CONFIGURATION,
                commit_properties=properties,
                post_commithook_properties=hooks,
            )
        else:
            # Appending never changes the columns, even if given another schema. Overwriting takes no removes but
            # finds them by the day, so that whole days have to leave.
            mode, leaving, only = "append", [_leaves(file, values) for file, values in removes], None
            if new_columns:
                mode, leaving, only = "overwrite", [], [(DAY, "in", sorted({str(v[DAY]) for _, v in removes}))]
            DeltaTable(str(table_path), version=head).create_write_transaction(
                [*leaving, *entering],
                mode=mode,
                schema=schema,
                partition_by=list(partition_by),
                partition_filters=only,
                commit_properties=properties,
                post_commithook_properties=hooks,
            )
    failpoint("replace.after_commit")
    _make_durable(table_path, head + 1)
    return head + 1


@contextmanager
def _only_on(table_path: Location, head: int, publication: str) -> Iterator[None]:
    """Fail a commit if its version is not the newest any more, and name the author of the next one.

    A commit that seemed to fail may exist: a store can write it without confirming. It is then tried again, and the
    store reports that it exists.
    """
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        if not commits.has_commit(table_path, head + 1):
            raise
        other = commits.commit(table_path, head + 1)
        if other.publication == publication:
            return
        if isinstance(error, OSError):
            raise
        if other.publication is None:
            raise ForeignCommitError(table_name(table_path), other.version, other.made_by) from error
        raise lock_lost_to(table_name(table_path), other.version, other.publication) from error


def _properties(said: Mapping[str, str]) -> tuple[CommitProperties, PostCommitHookProperties]:
    """Return deltalake's options for a commit: our metadata, no retries, no clean-up."""
    from deltalake import CommitProperties, PostCommitHookProperties

    said_once = CommitProperties(custom_metadata=dict(said), max_commit_retries=0)
    return said_once, PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def _leaves(file: DataFile, values: Mapping[str, str | None]) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(file.path, True, time.time_ns() // 1_000_000, file.size, dict(values))


def restore_whole(table_path: Location, head: int, version: int, said: Mapping[str, str]) -> int:
    """Commit a table back to a version with its columns and properties, if these differ and not only the files.

    Returns:
        The new version.
    """
    from deltalake import DeltaTable

    properties, hooks = _properties(said)
    with errors_numbered(table_path), _only_on(table_path, head, said[commits.PUBLICATION]):
        DeltaTable(str(table_path), version=head).restore(
            version, commit_properties=properties, post_commithook_properties=hooks
        )
    _make_durable(table_path, head + 1)
    return head + 1


def _make_durable(table_path: Location, version: int) -> None:
    log = table_path / "_delta_log"
    sync([commits.commit_file(table_path, version), log, table_path])
    failpoint("replace.synced")
    if version > 0 and version % CHECKPOINT_INTERVAL == 0:
        # After the sync, so that a power cut never leaves a checkpoint of commits that are not there.
        write_checkpoint(table_path, version)


def write_checkpoint(table_path: Location, version: int) -> None:
    """Write a checkpoint of a table's log up to a version on disk; call it under the publish lock.

    It has the live files and no removed ones. Delta keeps a mark of every removed file for as long as the table's
    retention, here for ever: no reader needs one, and our deletion of files does not read them.
    """
    log = table_path / "_delta_log"
    summary, hint = log / f"{version:020d}.checkpoint.parquet", log / "_last_checkpoint"
    from deltalake import DeltaTable

    failpoint("checkpoint.before")
    with errors_numbered(table_path):
        DeltaTable(str(table_path), version=version).create_checkpoint()
    failpoint("checkpoint.written")
    drop_marks(summary, hint)
    sync([summary, hint, log])
    failpoint("checkpoint.synced")


def drop_torn_checkpoint(table_path: Location, head: int) -> bool:
    """Remove the checkpoint of the head if a power cut tore it; its commits all exist.

    Until then deltalake and Spark cannot read the table. Older commits are whole: each publisher checks this first.

    Returns:
        Whether there was one.
    """
    log = table_path / "_delta_log"
    single, hint = log / f"{head:020d}.checkpoint.parquet", log / "_last_checkpoint"
    named = commits.checkpoint_hint(table_path) == head
    if single.exists():
        torn = not (single.read(12) or b"").endswith(b"PAR1")
    else:
        torn = named and not any(name.startswith(f"{head:020d}.checkpoint.") for name in log.names())
    if not torn:
        return False
    if named:
        hint.remove()
    single.remove()
    return True


@contextmanager
def errors_numbered(table_path: Location) -> Iterator[None]:
    """Raise errors of the operating system, such as a full disk, with their number, which deltalake puts in words."""
    if is_object_store(str(table_path)):
        from platform_assets.lakehouse.storage.answers import refusals_explained  # which a lake on a disk does without

        with refusals_explained(str(table_path)):
            yield
        return
    try:
        yield
    except OSError as error:
        said = _OS_ERROR.search(str(error))
        if error.errno is not None or said is None:
            raise
        number = int(said[1])
        raise OSError(number, os.strerror(number), str(table_path)) from error


_MOST_WHY = 200
"""Characters of the reason that a commit repeats; the manifest has it whole."""


def commit_metadata(manifest: Manifest) -> dict[str, str]:
    """Return the essentials of a manifest as commit metadata, so that any Delta tool can show them."""
    why = manifest.why if len(manifest.why) <= _MOST_WHY else f"{manifest.why[: _MOST_WHY - 1]}…"
    said = {
        commits.PUBLICATION: manifest.publication,
        commits.KIND: manifest.kind,
        "platform.run": manifest.run,
        "platform.who": manifest.who,
        "platform.why": why,
        "platform.git_commit": manifest.git_commit or "",
        "platform.version": manifest.platform_version,
    }
    return {name: value for name, value in said.items() if value}


_PATH = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*/{DAY}=(\d{{4}}-\d{{2}}-\d{{2}})/[^/\\\x00-\x1f]+\.parquet")


def replace(lake: Lake, change: TableChange, manifest: Manifest, before: TableSnapshot | None) -> int:
    """Make the named days consist of exactly these files; every other day stays unchanged.

    Call it under the publish lock. It makes the table on first use. If the change brings other columns, they are
    committed together with the days. Nothing is committed if nothing differs, so it is idempotent.

    Args:
        change: whole content of each day; no files empty it.
        manifest: manifest of the publication; its essentials are recorded in the commit.

    Returns:
        The version of the table that has this content.
    """
    path = lake.table_path(change.table)
    check_columns(path, change, before)
    removes, adds = difference(before, {day: content.files for day, content in change.days.items()})
    same_columns = before is None or types_in(before.schema_string) == types_in(change.schema_string)
    if before and same_columns and not removes and not adds:
        return before.version
    for file, values in adds:
        check_file(path, change.table, file, str(values[DAY]))
    return commit_difference(
        path,
        before.version if before else -1,
        removes,
        adds,
        before.schema_string if before and same_columns else change.schema_string,
        commit_metadata(manifest),
        [DAY],
        new_columns=not same_columns,
    )


def difference(
    before: TableSnapshot | None, days: Mapping[date, Sequence[DataFile]]
) -> tuple[list[Entry], list[Entry]]:
    """Return which live files of the named days are removed, and which files are added, sorted by path."""
    live = before.by_day() if before else {}
    removes: list[Entry] = []
    adds: list[Entry] = []
    for day in sorted(days):
        values = {DAY: day.isoformat()}
        target = {file.path: file for file in days[day]}
        have = live.get(day, {})
        removes += [(have[path], values) for path in sorted(have.keys() - target.keys())]
        adds += [(target[path], values) for path in sorted(target.keys() - have.keys())]
    return removes, adds


def changed_since(change: TableChange, head: TableSnapshot | None) -> list[date]:
    """Return the days that differ both from when they were read and from their new content."""
    live = head.by_day() if head else {}
    return [
        day
        for day, content in sorted(change.days.items())
        if (now := live.get(day, {}).keys()) != set(content.base) and now != {file.path for file in content.files}
    ]


def check_file(table_path: Location, table: str, file: DataFile, day: str) -> None:
    """Refuse a file that differs from its manifest.

    Raises:
        StagedFileError: it is missing, has another size, or is not in the folder of its day.
    """
    match = _PATH.fullmatch(file.path)
    if not match or match[1] != day:
        raise StagedFileError(
            f"{table} {day}: {file.path!r} does not lie in <publication>/{DAY}={day}/.",
            "Take the files of a day as staged_files() or live_files() lists them.",
        )
    size = (table_path / file.path).size()
    if size != file.size:
        raise StagedFileError(
            f"{table} {day}: {file.path} {'is missing' if size is None else f'has {size} bytes'}, "
            f"recorded were {file.size} bytes.",
            "Compute the day again; what was staged is not complete.",
        )
