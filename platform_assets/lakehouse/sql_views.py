"""Views in SQL: every table of one release under a name, for Spark and for DuckDB, as statements to be run there.

The version, or the files, are written out, so that all views show the same release however long they are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Set
from typing import Literal

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta.log import TableSnapshot
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import whole_snapshot
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.places import for_hadoop

Dialect = Literal["spark", "duckdb"]

_DUCKDB_TYPES = {
    "long": "BIGINT",
    "integer": "INTEGER",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "date": "DATE",
    "double": "DOUBLE",
}


def spark_view(table: str) -> str:
    """Return the name of a table's temporary view in Spark, without a database: `silver_sales` of `silver.sales`."""
    return table.replace(".", "_")


def tables_without_view(lake: Lake, release: Release) -> tuple[str, ...]:
    """Tables that came after a release: views of them would show another one."""
    return tuple(sorted(current_release(lake).versions.keys() - release.versions.keys()))


def statements(lake: Lake, release: Release, dialect: Dialect) -> Iterator[str]:
    """Yield what makes the views of a release, one statement each, without a semicolon.

    Raises:
        DamagedTableError: files of that release are gone.
        LakeError: DuckDB would take a folder above the lake for a column.
    """
    if dialect == "duckdb":
        yield from _duckdb(lake, release)
        return
    for table, version in release.versions.items():
        whole_snapshot(lake, table, release)
        path = for_hadoop(str(lake.table_path(table))).replace("`", "``")
        yield (
            f"CREATE OR REPLACE TEMPORARY VIEW {spark_view(table)} AS\n"
            f"SELECT * FROM delta.`{path}` VERSION AS OF {version}"
        )


def _duckdb(lake: Lake, release: Release) -> Iterator[str]:
    without = tables_without_view(lake, release)
    for layer in sorted({table.partition(".")[0] for table in (*release.versions, *without)}):
        yield f"CREATE SCHEMA IF NOT EXISTS {_quoted(layer)}"
    for table in without:
        yield f"DROP VIEW IF EXISTS {_qualified(table)}"
    for table in release.versions:
        snapshot = whole_snapshot(lake, table, release)
        yield f"CREATE OR REPLACE VIEW {_qualified(table)} AS\n{_select(lake, table, snapshot)}"


def _select(lake: Lake, table: str, snapshot: TableSnapshot) -> str:
    columns = {field["name"]: field["type"] for field in json.loads(snapshot.schema_string)["fields"]}
    if not snapshot.files:
        none = ", ".join(f"CAST(NULL AS {_duckdb_type(type_)}) AS {_quoted(name)}" for name, type_ in columns.items())
        return f"SELECT {none} WHERE false"
    _refuse_folders_like_columns(lake, table, columns)
    shown = ", ".join(_column(name, type_) for name, type_ in columns.items())
    path = lake.table_path(table)
    files = ",\n  ".join(_file(str(path / name)) for name in sorted(snapshot.files))
    options = [f"[\n  {files}\n]", "hive_partitioning = true", f"hive_types = {{'{DAY}': DATE}}"]
    if _all_have(snapshot, columns.keys() - {DAY}):
        return f"SELECT {shown}\nFROM read_parquet({', '.join(options)})"
    # Of files that lack a column, DuckDB has to be told; and its type, for the case that all of them do.
    none = ", ".join(f"CAST(NULL AS {_type_in_file(type_)}) AS {_quoted(name)}" for name, type_ in columns.items())
    rows = f"read_parquet({', '.join([*options, 'union_by_name = true'])})"
    return f"FROM (FROM {rows}\nUNION ALL BY NAME SELECT {none} WHERE false)\nSELECT {shown}"


def _all_have(snapshot: TableSnapshot, columns: Set[str]) -> bool:
    """Return whether the statistics of every file speak of all columns; of those it lacks a file says nothing."""
    return all(columns <= json.loads(file.stats).get("nullCount", {}).keys() for file in snapshot.files.values())


def _refuse_folders_like_columns(lake: Lake, table: str, columns: Collection[str]) -> None:
    for folder in lake.root.address.split("/"):
        name, is_pair, _ = folder.partition("=")
        if is_pair and name.lower() in columns:
            raise LakeError(
                f"DuckDB would take the folder {folder!r} of {lake.root} for the column {name.lower()} of {table}.",
                "Read with platform_assets.read(engine='duckdb'), or move the whole lake to another folder and name it "
                "in PLATFORM_LAKE.",
            )


def _column(name: str, type_: str) -> str:
    # Files say that moments are UTC, unless they are INT96, which DuckDB takes for local ones. Both count alike.
    if type_ == "timestamp":
        return f"make_timestamptz(epoch_us({_quoted(name)})) AS {_quoted(name)}"
    return _quoted(name)


def _type_in_file(type_: str) -> str:
    # Beside a type with a time zone, DuckDB would take moments without one for local ones.
    return "TIMESTAMP" if type_ == "timestamp" else _duckdb_type(type_)


def _duckdb_type(type_: str) -> str:
    return _DUCKDB_TYPES.get(type_, type_.upper())


def _qualified(table: str) -> str:
    return ".".join(map(_quoted, table.split(".")))


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _file(path: str) -> str:
    """Return a file's name as text that DuckDB finds no pattern in."""
    literal = re.sub(r"([*?])", r"[\1]", path).replace("'", "''")
    return f"'{literal}'"
