"""Read released tables, all at the same release: as Arrow, or by SQL statements for Spark and DuckDB.

Views contain the version, or the files, so that all show the same release however long they are used.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Literal

from platform_assets.contracts import DAY
from platform_assets.contracts.errors import unknown_table
from platform_assets.lakehouse.delta.log import TableSnapshot, table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError, LakeError, NeverPublishedError
from platform_assets.lakehouse.horizon import require_whole
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, damaged, opened, other_length, row_batches
from platform_assets.places import for_hadoop
from platform_assets.records.manifest import DataFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_BATCH_ROWS = 65_536
_EPOCH = date(1970, 1, 1)


def resolve(lake: Lake, release: int | Release | None) -> Release:
    """Return the requested release, with the versions of its tables."""
    if release is None:
        return current_release(lake)
    meant = release if isinstance(release, Release) else release_of(lake, release)
    require_whole(lake, meant.number)
    return meant


def version_in(lake: Lake, table: str, release: Release, declared: Collection[str] = ()) -> int:
    """Return the version of a table in a release.

    Raises:
        UnknownTableError: no contract declares such a table, and it was never published.
        NeverPublishedError: the release has no content of it.
    """
    if table in release.versions:
        return release.versions[table]
    choices = sorted({*declared, *release.versions})
    never = NeverPublishedError(
        f"{table} has never been published" + (f" up to release {release.number}." if release.number >= 0 else "."),
        "Materialize it first, or name a later release.",
    )
    if table in declared or table in lake.table_names():
        raise never
    if not choices:
        lake.table_path(table)
        raise never
    raise unknown_table(table, choices)


def whole_snapshot(lake: Lake, table: str, release: Release, days: Collection[date] | None = None) -> TableSnapshot:
    """Return the files of a table at a release that has it, checking that those of some days still exist."""
    path = lake.table_path(table)
    snapshot = table_snapshot(path, release.versions[table])
    wanted = [name for name, day in snapshot.days.items() if days is None or day in days]
    sizes = {name: (path / name).size() for name in wanted}
    gone = [name for name in wanted if sizes[name] is None]
    if cut := [name for name in wanted if name not in gone and sizes[name] != snapshot.files[name].size]:
        first = min(cut)
        raise damaged(path / first, other_length(path / first, snapshot.files[first].size))
    if gone:
        require_whole(lake, release.number)  # they may have been deleted since it was resolved
        raise DamagedTableError(
            f"{len(gone):,} files of {table} at release {release.number} are gone, for example {path / min(gone)}.",
            "If the lake was moved or copied, see that its whole folder came along; else "
            "`platform-assets admin audit` names what repairs each day: a backup, or the command that computes it "
            "again. Releases beyond "
            "the rollback window are kept only while they are pinned: name a newer one.",
        )
    return snapshot


def dataset(
    lake: Lake,
    table: str,
    days: Iterable[date] | None = None,
    release: int | Release | None = None,
) -> ds.Dataset:
    """Return a table as an Arrow dataset. Opens only the files of the requested days.

    Args:
        release: number of a release or the release itself; the current one by default.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds
    from deltalake import Schema

    now = resolve(lake, release)
    version_in(lake, table, now)
    only = None if days is None else set(days)
    snapshot = whole_snapshot(lake, table, now, only)
    form = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    filesystem, path = lake.table_path(table).arrow()
    # What the log says of other columns than the day is left to others: bounds of before may be tighter than the rows.
    fragments = [
        form.make_fragment(f"{path}/{name}", filesystem, ds.field(DAY) == pa.scalar(day, pa.date32()))
        for name, day in sorted(snapshot.days.items())
        if only is None or day in only
    ]
    return ds.FileSystemDataset(
        fragments, pa.schema(Schema.from_json(snapshot.schema_string).to_arrow()), form, filesystem
    )


@contextmanager
def row_reader(
    lake: Lake,
    table: str,
    columns: Sequence[str],
    release: int | Release | None = None,
    days: Collection[date] | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """Read some columns of a table, file by file, without Arrow's datasets, which import pandas."""
    import pyarrow as pa
    from deltalake import Schema

    now = resolve(lake, release)
    version_in(lake, table, now)
    snapshot = whole_snapshot(lake, table, now, days)
    whole = pa.schema(Schema.from_json(snapshot.schema_string).to_arrow())
    schema = pa.schema([whole.field(name) for name in columns if name in whole.names])

    failures: list[DamagedTableError] = []

    def in_files() -> Iterator[tuple[date | None, pa.RecordBatch]]:
        try:
            for name, day in sorted(snapshot.days.items()):
                if days is not None and day not in days:
                    continue
                for batch in row_batches(lake.table_path(table) / name, _BATCH_ROWS, schema.names):
                    yield day, batch
        except DamagedTableError as error:
            failures.append(error)
            raise

    def batches() -> Iterator[pa.RecordBatch]:
        for day, batch in in_files():
            there = {field: batch.column(field) for field in batch.schema.names}
            there[DAY] = _repeated(day, batch.num_rows)
            arrays = [
                _of_type(there[field.name], field.type) if field.name in there else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    try:
        yield pa.RecordBatchReader.from_batches(schema, batches())
    except Exception as error:
        if failures:  # who reads a stream of Arrow's gets its words only
            raise failures[0] from error
        raise


def _of_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values to the table's type, if they differ, without Arrow's cast, which imports all its functions."""
    return values if values.type == wanted else values.cast(wanted)


def _repeated(day: date | None, rows: int) -> pa.Array:
    """Return a day as a column, without Arrow's own scalars, which import pandas to check their type."""
    import pyarrow as pa

    if day is None:
        return pa.nulls(rows, pa.date32())
    days = array("i", [day.toordinal() - _EPOCH.toordinal()]) * rows
    return pa.Array.from_buffers(pa.date32(), rows, [None, pa.py_buffer(days)])


def rows_of_files(table_path: Location, files: Mapping[date, Sequence[DataFile]]) -> ds.Dataset:
    """Return the rows of some days from their files, in a release or a stage, with the columns of all files."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    filesystem, path = table_path.arrow()
    names = [file.path for of_day in files.values() for file in of_day]
    day = pa.schema([(DAY, pa.date32())])
    fields: dict[str, pa.Field] = {}
    for name in names:
        with opened(table_path / name) as parquet:
            for field in parquet.schema_arrow:
                fields.setdefault(field.name, field)
    schema = pa.schema([*fields.values(), *day])
    by_day = ds.HivePartitioning(day)
    paths = [f"{path}/{name}" for name in names]
    return ds.dataset(paths, schema=schema, format="parquet", partitioning=by_day, filesystem=filesystem)


def read_arrow(
    lake: Lake,
    table: str,
    days: Iterable[date] | None = None,
    columns: Iterable[str] | None = None,
    release: int | Release | None = None,
) -> pa.Table:
    """Return the rows of a table as Arrow.

    Args:
        release: number of a release or the release itself; the current one by default.
    """
    import pyarrow as pa

    now, only = resolve(lake, release), None if days is None else list(days)
    rows = dataset(lake, table, only, now)
    try:
        return rows.to_table(columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        snapshot, path = whole_snapshot(lake, table, now, only), lake.table_path(table)
        for name, file in sorted(snapshot.files.items()):
            if (only is None or snapshot.days[name] in only) and (problem := damage(path / name, file.size)):
                raise damaged(path / name, problem) from error
        raise


Dialect = Literal["spark", "duckdb"]

_DUCKDB_TYPES = {
    "long": "BIGINT",
    "int": "INTEGER",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
}


def spark_view(table: str) -> str:
    """Return the name of a table's temporary view in Spark, without a database: `silver_sales` of `silver.sales`."""
    return table.replace(".", "_")


def tables_without_view(lake: Lake, release: Release) -> tuple[str, ...]:
    """Return the tables that are newer than a release: their views would show another one."""
    return tuple(sorted(current_release(lake).versions.keys() - release.versions.keys()))


def statements(lake: Lake, release: Release, dialect: Dialect) -> Iterator[str]:
    """Yield the statements that make the views of a release, without semicolons."""
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
        yield f"CREATE SCHEMA IF NOT EXISTS {quoted(layer)}"
    for table in without:
        yield f"DROP VIEW IF EXISTS {qualified(table)}"
    for table in release.versions:
        snapshot = whole_snapshot(lake, table, release)
        yield f"CREATE OR REPLACE VIEW {qualified(table)} AS\n{_select(lake, table, snapshot)}"


def _select(lake: Lake, table: str, snapshot: TableSnapshot) -> str:
    columns = {field["name"]: field["type"] for field in json.loads(snapshot.schema_string)["fields"]}
    if not snapshot.files:
        none = ", ".join(f"CAST(NULL AS {duckdb_type(type_)}) AS {quoted(name)}" for name, type_ in columns.items())
        return f"SELECT {none} WHERE false"
    _refuse_folders_like_columns(lake, table, columns)
    shown = ", ".join(_column(name, type_) for name, type_ in columns.items())
    path = lake.table_path(table)
    files = ",\n  ".join(_file(str(path / name)) for name in sorted(snapshot.files))
    options = [f"[\n  {files}\n]", "hive_partitioning = true", f"hive_types = {{'{DAY}': DATE}}"]
    if _all_have(snapshot, columns.keys() - {DAY}):
        return f"SELECT {shown}\nFROM read_parquet({', '.join(options)})"
    # DuckDB must know which files lack a column, and the column's type, in case all of them do.
    none = ", ".join(f"CAST(NULL AS {_type_in_file(type_)}) AS {quoted(name)}" for name, type_ in columns.items())
    rows = f"read_parquet({', '.join([*options, 'union_by_name = true'])})"
    return f"FROM (FROM {rows}\nUNION ALL BY NAME SELECT {none} WHERE false)\nSELECT {shown}"


def _all_have(snapshot: TableSnapshot, columns: Set[str]) -> bool:
    """Return whether every file's statistics cover all columns; a file has none of columns that it lacks."""
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
        return f"make_timestamptz(epoch_us({quoted(name)})) AS {quoted(name)}"
    return quoted(name)


def _type_in_file(type_: str) -> str:
    # Beside a type with a time zone, DuckDB would take moments without one for local ones.
    return "TIMESTAMP" if type_ == "timestamp" else duckdb_type(type_)


def duckdb_type(type_: str) -> str:
    """Return DuckDB's type for a type of a contract or of Delta."""
    return _DUCKDB_TYPES.get(type_, type_.upper())


def qualified(table: str) -> str:
    """Return a table's name, with its schema, as SQL."""
    return ".".join(map(quoted, table.split(".")))


def quoted(name: str) -> str:
    """Return a name as an identifier of DuckDB's or PostgreSQL's SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _file(path: str) -> str:
    """Return a file's name as text without DuckDB's patterns."""
    literal = re.sub(r"([*?])", r"[\1]", path).replace("'", "''")
    return f"'{literal}'"
