"""Answer questions about rows from their Parquet files; a Spark query costs a young JVM half a second.

The results equal Spark's exactly. None means that only Spark can answer. Only few rows on the disk of Spark's own
process are read, and DuckDB gets no more memory than they should need.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StringType, StructType
from xxhash import xxh64_intdigest

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.columns import digits_of
from platform_assets.contracts.table import amounts
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.records.differences import HALVES, DayChange, Digest
from platform_assets.records.manifest import DataFile
from platform_assets.records.raw_rows import TOMBSTONE
from platform_assets.spark.session.on_demand import is_one_process
from platform_assets.spark.tables.schemas import digest_columns, digest_salts

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_BYTES = 64 * 1024 * 1024
"""Of files that are looked at without Spark; of more rows a query's own cost is a small part."""

_MOST_HASHED = 16 * 1024 * 1024
_MEMORY = "512MB"
_BATCH_ROWS = 16_384
_LOW_HALF = 0xFFFFFFFF
_SUMMED_DIGITS = 28
"""Most digits of a decimal whose sum surely has a type of its own in both engines."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileRows:
    """The rows of some days of a table, few enough to read without Spark."""

    folder: Location
    files: Mapping[date, Sequence[DataFile]]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(file.size for of_day in self.files.values() for file in of_day)


def at_hand(spark: SparkSession, folder: Location, files: Mapping[date, Sequence[DataFile]]) -> FileRows | None:
    """Return the rows of some files; None if Spark should read them.

    On a cluster the driver would fetch what its executors have locally, and from an object store everything.
    """
    rows = FileRows(folder, files)
    return rows if is_at_hand(spark, folder, rows.size) else None


def is_at_hand(spark: SparkSession, folder: Location, size: int) -> bool:
    """Return whether rows of so many bytes are read without Spark."""
    is_here = is_one_process(spark) and isinstance(folder, Disk) and not set("*?[") & set(str(folder))  # no pattern
    return is_here and size <= MOST_BYTES


def staged_at_hand(spark: SparkSession, folder: Location) -> FileRows | None:
    """Return the rows of a stage's folder; None if Spark should read them, or rows have no day."""
    by_day = table_snapshot(folder).by_day()
    files = {day: tuple(of_day.values()) for day, of_day in by_day.items() if day is not None}
    return at_hand(spark, folder, files) if len(files) == len(by_day) else None


def contents(rows: FileRows, schema: StructType) -> dict[date, tuple[Digest, Mapping[str, int]]] | None:
    """Return the digest of every day that has rows, as Spark computes it, and how many nulls each column has.

    Args:
        schema: of the rows; its types are those of contracts.
    """
    nulls: defaultdict[date, Counter[str]] = defaultdict(Counter)
    found = digests(rows, schema, nulls=nulls)
    return None if found is None else {day: (digest, nulls[day]) for (day,), digest in found.items()}


def digests(
    rows: FileRows,
    schema: StructType,
    by: Sequence[str] = (),
    nulls: MutableMapping[date, Counter[str]] | None = None,
) -> dict[tuple[Any, ...], Digest] | None:
    """Return the digest of each day's rows, grouped by some columns, by day and their values.

    Args:
        schema: of the rows; its types are those of contracts.
        nulls: receives the nulls of each day and column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from platform_assets.spark.compare.in_files import row_hashes

    if rows.size > _MOST_HASHED:
        return None
    names = digest_columns([name for name in schema.fieldNames() if name != DAY])
    salts = digest_salts(names)
    texts = [field.name for field in schema.fields if isinstance(field.dataType, StringType)]
    found: defaultdict[tuple[Any, ...], Digest] = defaultdict(Digest)
    counted = names if nulls is not None else ()
    figures: list[tuple[Any, ...]] = [([], "count_all"), *((half, "sum") for half in _HALVES)]
    figures += [(name, "count", pc.CountOptions("only_null")) for name in counted]
    try:
        for part in _parts(rows, names, texts):
            columns = [part.column(name).chunk(0) for name in names]
            halves = [half for each in row_hashes(columns, salts) for half in (each & _LOW_HALF, each >> 32)]
            keys = {name: _plain(part.column(name)) for name in (DAY, *by)}
            others = {name: part.column(name) for name in counted}
            table = pa.table({**others, **keys, **dict(zip(_HALVES, halves, strict=True))})
            groups = table.group_by(list(keys), use_threads=False).aggregate(figures)
            for group in groups.to_pylist():
                a, b, c, d = (group[f"{half}_sum"] for half in _HALVES)
                found[tuple(group[name] for name in keys)] += Digest(group["count_all"], (a, b, c, d))
                if nulls is not None:
                    nulls[group[DAY]].update({name: group[f"{name}_count"] for name in names})
    except (TypeError, KeyError, pa.ArrowException) as error:
        _log.debug("Spark computes the digests of files in %s: %s", rows.folder, error)
        return None
    return dict(found)


_HALVES = tuple(f"_half_{n}" for n in range(HALVES))


def _parts(rows: FileRows, names: Sequence[str], texts: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows with some columns and their day, many small files together, each column contiguous."""
    import pyarrow as pa

    def together(parts: list[pa.Table]) -> pa.Table:
        return pa.concat_tables(parts, promote_options="default").unify_dictionaries().combine_chunks()

    held: list[pa.Table] = []
    count = 0
    for day, files in rows.files.items():
        for file in files:
            for batch in row_batches(rows.folder / file.path, _BATCH_ROWS, once=texts):
                of_day = pa.repeat(pa.scalar(day, pa.date32()), batch.num_rows)
                held.append(pa.table({**{name: batch.column(name) for name in names}, DAY: of_day}))
                count += batch.num_rows
                if count >= _BATCH_ROWS:
                    yield together(held)
                    held, count = [], 0
    if count:
        yield together(held)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    from pyarrow import types

    return values.cast(values.type.value_type) if types.is_dictionary(values.type) else values


def may_move(arriving: FileRows, present: FileRows, source: Contract) -> bool:
    """Return whether a key of arriving raw rows may be on two days; False if Spark would find none.

    Args:
        present: raw rows already there, none of them withdrawn.
    """
    key = ", ".join(f'"{name}"' for name in (*source.key, DAY))
    same = " AND ".join(f'a."{name}" = p."{name}"' for name in source.key)
    dated = f'"{source.event_time or DAY}" IS NOT NULL'

    def ask(new: duckdb.DuckDBPyRelation, *old: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        every = mine = new.filter(dated).project(key)
        for rows in old:
            every = every.union(rows.filter(f"{dated} AND _kind <> '{TOMBSTONE}'").project(key))
        return every.set_alias("p").join(mine.set_alias("a"), f"{same} AND a.{DAY} <> p.{DAY}", how="semi").limit(1)

    has_doubles = any(source.column(name).type == "double" for name in source.key)
    found = None if has_doubles else answers(ask, arriving, *([present] if present.files else []))
    return found is None or bool(found)


def repeated_keys(rows: FileRows, key: Sequence[str], schema: StructType) -> dict[date, int] | None:
    """Count the keys of each day with more than one row, nulls being equal; days without any are left out."""
    if any(isinstance(schema[name].dataType, DoubleType) for name in key):
        return None  # one number in several forms
    by_key = ", ".join(f'"{name}"' for name in dict.fromkeys((DAY, *key)))
    found = answers(
        lambda given: (
            given.aggregate(f"{by_key}, count(*) AS _rows", by_key)
            .filter("_rows > 1")
            .aggregate(f"{DAY}, count(*)", DAY)
        ),
        rows,
    )
    return None if found is None else dict(found)


def changes(before: FileRows, after: FileRows, contract: Contract) -> dict[date, DayChange] | None:
    """Return the result of `row_diff.day_changes` for days whose rows all have the contract's columns."""
    names = amounts(contract)
    types = (digits_of(contract.column(name).type) for name in names)
    if any(digits and digits[0] > _SUMMED_DIGITS for digits in types):
        return None
    same = [f'b."{name}" IS NOT DISTINCT FROM a."{name}"' for name in contract.key]
    differs = [f'b."{name}" IS DISTINCT FROM a."{name}"' for name in contract.column_names if name not in contract.key]
    figures = [
        f"coalesce(b.{DAY}, a.{DAY})",
        f"count(*) FILTER (b.{DAY} IS NULL)",
        f"count(*) FILTER (a.{DAY} IS NULL)",
        f"count(*) FILTER (b.{DAY} = a.{DAY} AND ({' OR '.join((*differs, 'false'))}))",
        *(f'coalesce(sum({side}."{name}"), 0)' for side in "ba" for name in names),
    ]
    by_key, days = " AND ".join((f"b.{DAY} = a.{DAY}", *same)), f"coalesce(b.{DAY}, a.{DAY})"
    found = answers(
        lambda b, a: b.set_alias("b").join(a.set_alias("a"), by_key, how="outer").aggregate(", ".join(figures), days),
        before,
        after,
    )
    if found is None:
        return None
    by_day: dict[date, DayChange] = {}
    for day, added, removed, changed, *sums in found:
        sides = (dict(zip(names, side, strict=True)) for side in (sums[: len(names)], sums[len(names) :]))
        by_day[day] = DayChange(added, removed, changed, *sides)
    return by_day


def answers(ask: Callable[..., duckdb.DuckDBPyRelation], *tables: FileRows) -> list[tuple[Any, ...]] | None:
    """Return DuckDB's answer; None if it has none, for lack of memory or of a column in old files."""
    import duckdb
    import pyarrow as pa

    try:
        with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": ""}) as database:
            database.execute("SET TimeZone = 'UTC'")
            return ask(*(_given(database, f"files_{at}", rows) for at, rows in enumerate(tables))).fetchall()
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        _log.debug("Spark is asked instead of DuckDB: %s", error)
        return None


def _given(database: duckdb.DuckDBPyConnection, name: str, rows: FileRows) -> duckdb.DuckDBPyRelation:
    """Return rows with all columns of the files, and the day of their folder, and no other folder's.

    Args:
        name: parameter that holds the files; a query of several relations needs different names.
    """
    files = [str(rows.folder / file.path) for of_day in rows.files.values() for file in of_day]
    how = "filename = '_file', hive_partitioning = false, union_by_name = true"
    read = database.sql(f"FROM read_parquet(${name}, {how})", params={name: files})
    return read.project(f"* EXCLUDE _file, CAST(regexp_extract(_file, '{DAY}=([^/]+)/[^/]+$', 1) AS DATE) AS {DAY}")


Hashes = npt.NDArray[np.uint64]

_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_FIRST_SEED = 42
_AS_LONG = 18
"""Most digits of a decimal that Spark hashes as a long."""


def row_hashes(columns: Sequence[pa.Array], salts: Sequence[int]) -> Hashes:
    """Return `xxhash64(salt, isnull(a), a, isnull(b), b, …)` of one or more columns: a row for each salt.

    Raises:
        TypeError: a column has a type that no contract can declare.
    """
    salted = _of_longs(np.array(salts, np.uint64), np.full(len(salts), _FIRST_SEED, np.uint64))
    hashes = np.repeat(salted[:, None], len(columns[0]), axis=1)
    for column in columns:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        hashes = _of_ints(is_null.astype(np.uint64), hashes)
        hashed = _of_values(column, hashes)
        hashes = np.where(is_null, hashes, hashed) if column.null_count else hashed
    return hashes


def _of_values(column: pa.Array, seeds: Hashes) -> Hashes:
    """Hash the values of a column; the hashes of nulls have no meaning."""
    type_ = column.type
    if types.is_dictionary(type_) or (types.is_decimal128(type_) and type_.precision > _AS_LONG):
        return _of_bytes(column, seeds)
    if types.is_boolean(type_) or types.is_int32(type_) or types.is_date32(type_):
        ints = column.cast(pa.int32()) if types.is_boolean(type_) else column.view(pa.int32())
        return _of_ints(_numbers(ints, 0).view(np.uint32).astype(np.uint64), seeds)
    if types.is_int64(type_) or type_ == pa.timestamp("us", "UTC"):
        return _of_longs(_numbers(column.view(pa.int64()), 0).view(np.uint64), seeds)
    if types.is_float64(type_):
        doubles = _numbers(column, 0.0) + 0.0  # one zero
        return _of_longs(np.where(np.isnan(doubles), np.nan, doubles).view(np.uint64), seeds)
    if types.is_decimal128(type_):
        first = 2 * column.offset
        units = np.frombuffer(column.buffers()[1], np.uint64)[first : first + 2 * len(column) : 2]
        return _of_longs(units, seeds)
    raise TypeError(f"a {type_} is not hashed here")


def _numbers(column: pa.Array, nothing: float) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = pc.fill_null(column, nothing).to_numpy(zero_copy_only=False)
    return numbers


def _of_ints(values: Hashes, seeds: Hashes) -> Hashes:
    return _mixed(_turned((seeds + (_P5 + np.uint64(4))) ^ (values * _P1), 23) * _P2 + _P3)


def _of_longs(values: Hashes, seeds: Hashes) -> Hashes:
    value = _turned(values * _P2, 31) * _P1
    return _mixed(_turned((seeds + (_P5 + np.uint64(8))) ^ value, 27) * _P1 + _P4)


def _turned(bits: Hashes, by: int) -> Hashes:
    return (bits << np.uint64(by)) | (bits >> np.uint64(64 - by))


def _mixed(bits: Hashes) -> Hashes:
    bits = (bits ^ (bits >> np.uint64(33))) * _P2
    bits = (bits ^ (bits >> np.uint64(29))) * _P3
    return bits ^ (bits >> np.uint64(32))


def _of_bytes(column: pa.Array, seeds: Hashes) -> Hashes:
    """Hash texts, and decimals of many digits in Java's byte form."""
    coded = column if types.is_dictionary(column.type) else column.dictionary_encode()
    words = list(_words(coded.dictionary))
    if not words:
        return seeds
    at = pc.fill_null(coded.indices, 0).to_pylist()
    lines = [[xxh64_intdigest(words[n], seed) for n, seed in zip(at, line.tolist(), strict=True)] for line in seeds]
    return np.array(lines, np.uint64)


def _words(values: pa.Array) -> Iterator[bytes]:
    if not types.is_decimal128(values.type):
        yield from values.cast(pa.binary()).to_pylist()
        return
    units = bytes(values.buffers()[1])
    for start in range(16 * values.offset, 16 * (values.offset + len(values)), 16):
        whole = int.from_bytes(units[start : start + 16], "little", signed=True)
        yield whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, signed=True)
