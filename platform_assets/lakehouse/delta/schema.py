"""Columns of a table: in its log, in its files, and which publication may change them.

A table's columns change with the commit that changes its days. Remaining files must not have a column that is added,
dropped or retyped: readers take a missing column as null, and cast, lose or revive an existing one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, schema_string_at
from platform_assets.lakehouse.errors import SchemaMismatchError, StagedFileError
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.records.manifest import TableChange


def schema_at(table_path: Location, version: int) -> str:
    """Return the Delta schema of a table at a version; cached, since a version never changes."""
    commit = commits.commit_file(table_path, version)
    return _schema_at(table_path, version, commit.written() if commit.exists() else None)


@lru_cache(maxsize=512)
def _schema_at(table_path: Location, version: int, committed: datetime | None) -> str:
    """Read it, cached with the time of the commit: a lake put in another's place may have the same versions."""
    return schema_string_at(table_path, version)


def types_in(schema_string: str) -> dict[str, str]:
    """Return the type of every column of a Delta schema, by name and in order; for a nested one Delta's JSON."""
    fields = json.loads(schema_string)["fields"]
    return {
        each["name"]: each["type"] if isinstance(each["type"], str) else json.dumps(each["type"]) for each in fields
    }


def differing_columns(left: Mapping[str, str], right: Mapping[str, str]) -> set[str]:
    """Return the columns that only one of two tables has, or that differ in type."""
    return {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}


def names_in(file: Location) -> tuple[str, ...]:
    """Return the columns of a Parquet file, in its order."""
    import pyarrow as pa  # which only few publications need

    try:
        with opened(file) as parquet:
            return tuple(parquet.schema_arrow.names)
    except (OSError, pa.ArrowInvalid) as error:
        raise StagedFileError(
            f"The columns of {file} cannot be read: {error}.",
            "Restore the file from a backup, or compute its day again.",
        ) from error


def files_with(table_path: Location, files: Iterable[str], names: set[str]) -> list[str]:
    """Return the files that have one of some columns."""
    return [file for file in files if names.intersection(names_in(table_path / file))]


def check_columns(path: Location, change: TableChange, before: TableSnapshot | None) -> None:
    """Refuse days whose columns differ from the table's, unless they may and can change them.

    Nullability is not compared: the writers here always allow nulls.

    Raises:
        SchemaMismatchError: names every column that is missing, unknown or of another type, or the file that would no
            longer read right.
    """
    new = types_in(change.schema_string)
    old = types_in(before.schema_string) if before else new
    if new.get(DAY) != "date":
        problems = [f"{DAY} is {new.get(DAY, 'missing')}, not date"]
    elif before and old != new and change.replaces_schema and types_in(change.replaces_schema) == old:
        problems = _problems_of_staying_files(path, change, before, differing_columns(old, new))
    else:
        problems = [f"{name} is missing" for name in old if name not in new]
        problems += [f"{name} is not in the table" for name in new if name not in old]
        problems += [
            f"{name} is {new[name]}, in the table {old[name]}" for name in old if new.get(name, old[name]) != old[name]
        ]
    if problems:
        raise SchemaMismatchError(
            f"The files staged for {change.table} do not fit it: {'; '.join(problems)}.",
            "Stage the days with the table's columns. If its contract changed, `platform-assets status stale` says "
            "what the "
            "table needs to follow it.",
        )


def _problems_of_staying_files(
    path: Location, change: TableChange, before: TableSnapshot, differing: set[str]
) -> list[str]:
    entering = {file.path for content in change.days.values() for file in content.files}
    staying = [name for name in before.files if before.days[name] not in change.days or name in entering]
    # The log can say of whole days only that they leave together with a change of columns.
    leaving_days = {day for name, day in before.days.items() if name not in staying}
    if half := sorted(name for name in staying if before.days[name] in leaving_days):
        return [f"only some files of {before.days[half[0]]} leave, and {half[0]} stays"]
    if not (wrong := sorted(files_with(path, staying, differing))):
        return []
    has = sorted(differing.intersection(names_in(path / wrong[0])))
    more = f" and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
    return [f"{', '.join(has)} of files that stay would not read right any more: {wrong[0]}{more}"]
