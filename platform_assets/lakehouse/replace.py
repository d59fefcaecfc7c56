"""`replace`: the one operation that changes a live table.

Publishing, rolling back, emptying a day and compacting it are all the same: some days get other files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta.log import TableSnapshot
from platform_assets.lakehouse.delta.new_commit import Entry, commit_difference
from platform_assets.lakehouse.delta.schema import check_columns, types_in
from platform_assets.lakehouse.errors import StagedFileError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import commit_metadata
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import DataFile, Manifest, TableChange

_PATH = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*/{DAY}=(\d{{4}}-\d{{2}}-\d{{2}})/[^/\\\x00-\x1f]+\.parquet")


def replace(lake: Lake, change: TableChange, manifest: Manifest, before: TableSnapshot | None) -> int:
    """Make the named days consist of exactly these files; every other day stays as it is.

    To be called under the publish lock. Makes the table on first use. Where the change brings other columns, they enter
    with the days in one commit. Nothing is committed where nothing differs, so that repeating it is harmless.

    Args:
        change: the whole content of each day; no files empty it.
        manifest: on whose behalf; its essentials are recorded in the commit.
        before: the head of the table, read under the lock; None if there is no table yet.

    Returns:
        The version of the table that has this content.

    Raises:
        SchemaMismatchError: the files have other columns than the table, and are not to bring them or cannot.
        StagedFileError: a file is missing, has another size, or lies elsewhere than its day says.
        ForeignCommitError: somebody who does not heed the publish lock has committed since.
        LockLostError: another publisher has.
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
    """Return which live files of the named days leave, and which files enter, sorted by path."""
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
    """Days that are neither as they were when read nor already as they are to be."""
    live = head.by_day() if head else {}
    return [
        day
        for day, content in sorted(change.days.items())
        if (now := live.get(day, {}).keys()) != set(content.base) and now != {file.path for file in content.files}
    ]


def check_file(table_path: Location, table: str, file: DataFile, day: str) -> None:
    """Refuse a file that is not what its manifest says.

    Raises:
        StagedFileError: it is missing, has another size, or does not lie in the folder of its day.
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
