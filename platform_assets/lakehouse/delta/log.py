"""Which files make up a table at a version, by day, with their statistics as the log has them.

Folded from the newest usable checkpoint and the commits after it. The log holds URL-encoded paths; everything above
this module, and deltalake's `AddAction`, works with decoded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log_state import checkpointed_schema, from_checkpoint, is_schema
from platform_assets.lakehouse.delta.statistics import trustworthy, types_of, without_bounds
from platform_assets.lakehouse.errors import (
    DamagedTableError,
    NullDayError,
    StagedFileError,
)
from platform_assets.lakehouse.layout import Lake, table_name
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.records.manifest import DataFile


@dataclass(frozen=True)
class TableSnapshot:
    """A table at a version.

    Args:
        schema_string: Delta schema.
        metadata: id, columns and properties of the table, to see whether somebody altered it.
        files: live files by decoded path.
        days: the day of each file, by path; None for rows without one.
    """

    version: int
    schema_string: str
    metadata: tuple[str, ...]
    files: dict[str, DataFile]
    days: dict[str, date | None]

    def by_day(self) -> dict[date | None, dict[str, DataFile]]:
        """The live files of every day that has some, by path."""
        by_day: dict[date | None, dict[str, DataFile]] = {}
        for path, file in self.files.items():
            by_day.setdefault(self.days[path], {})[path] = file
        return by_day


def table_snapshot(table_path: Location, version: int | None = None) -> TableSnapshot:
    """Fold a table's log.

    Args:
        version: version wanted; the head by default.

    Raises:
        DamagedTableError: there is no such version, its log lacks what every log has, or the table needs Delta
            features beyond protocol 1/2.
    """
    wanted = commits.head_version(table_path) if version is None else version
    _require(table_path, wanted)
    start, state = from_checkpoint(table_path, wanted)
    for number in range(start + 1, wanted + 1):
        actions = commits.actions(table_path, number)
        try:
            state.apply(actions)
        except (KeyError, TypeError, ValueError) as error:
            what = f"an action without {error}" if isinstance(error, KeyError) else "an action that is none of Delta's"
            raise _damaged(table_path, number, what) from error
    if lacking := state.lacking():
        raise _damaged(table_path, wanted, lacking)
    return TableSnapshot(
        wanted, state.schema_string, state.metadata, state.files, {path: state.days[path] for path in state.files}
    )


def _damaged(table_path: Location, version: int, what: str) -> DamagedTableError:
    return DamagedTableError(
        f"The log of {table_name(table_path)} has {what}, at version {version}: {table_path / '_delta_log'}.",
        "Restore the folder from a backup; if another tool wrote the table, write it again with a whole log.",
    )


def head_of(table_path: Location) -> TableSnapshot | None:
    """The newest version of a table; None if there is no table yet.

    Raises:
        DamagedTableError: as `snapshot`.
    """
    return table_snapshot(table_path) if commits.head_version(table_path) >= 0 else None


def schema_string_at(table_path: Location, version: int) -> str:
    """The Delta schema of a table at a version, without looking at its files.

    Raises:
        DamagedTableError: there is no such version.
    """
    _require(table_path, version)
    summed_up = commits.checkpoint_hint(table_path)
    for number in range(version, -1, -1):
        for action in commits.actions(table_path, number):
            if "metaData" in action:
                schema = (action["metaData"] or {}).get("schemaString")
                return str(schema) if is_schema(schema) else table_snapshot(table_path, version).schema_string
        if number - 1 <= summed_up:
            break
    return checkpointed_schema(table_path, version) or table_snapshot(table_path, version).schema_string


def _require(table_path: Location, version: int) -> None:
    if version < 0 or not commits.has_commit(table_path, version):
        raise DamagedTableError(
            f"{table_name(table_path)} has no version {version}.",
            "Check that the lake's folder is complete; restore the table from a backup if it was deleted.",
        )


def live_files(table_path: Location, version: int | None = None) -> dict[date, tuple[DataFile, ...]]:
    """The live files of each day, sorted by path.

    Args:
        version: version wanted; the head by default.

    Raises:
        NullDayError: rows have no day.
        DamagedTableError: there is no such version.
    """
    return files_of_days(table_snapshot(table_path, version), table_name(table_path))


def staged_files(lake: Lake, table: str, publication: str) -> tuple[str, dict[date, tuple[DataFile, ...]]]:
    """What a publication staged for a table: Delta schema, and the files of each day relative to the table's folder.

    Raises:
        StagedFileError: nothing was staged.
        NullDayError: staged rows have no day.
    """
    folder = lake.stage_path(table, publication)
    if commits.head_version(folder) < 0:
        raise StagedFileError(
            f"Publication {publication} staged nothing for {table}: {folder} has no Delta log.",
            "Write the computed days there as a Delta table before publishing.",
        )
    staged = table_snapshot(folder)
    types = types_of(staged.schema_string)
    files = {
        day: tuple(
            file.model_copy(
                update={"path": f"{publication}/{file.path}", "stats": _stats(folder / file.path, file.stats, types)}
            )
            for file in files
        )
        for day, files in files_of_days(staged, table).items()
    }
    return staged.schema_string, files


def _stats(file: Location, stats: str, types: Mapping[str, Any]) -> str:
    """Statistics of a file that can be trusted; deltalake passes over parts of one whose bounds are no numbers."""
    if "double" in types.values():
        with opened(file) as parquet:
            if parquet.num_row_groups > 1:
                return without_bounds(stats)
    return trustworthy(stats, types)


def files_of_days(snapshot: TableSnapshot, table: str) -> dict[date, tuple[DataFile, ...]]:
    """The live files of each day of a table that was read, sorted by path.

    Raises:
        NullDayError: rows have no day.
    """
    by_day: dict[date, tuple[DataFile, ...]] = {}
    for day, files in snapshot.by_day().items():
        if day is None:
            raise NullDayError(
                f"{table} has rows without {DAY}, for example in {min(files)}.",
                f"Rows whose {DAY} is null belong to quarantine; filter them out before staging.",
            )
        by_day[day] = tuple(files[path] for path in sorted(files))
    return dict(sorted(by_day.items()))
