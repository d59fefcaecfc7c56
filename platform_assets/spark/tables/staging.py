"""Staged writes: Spark writes the computed days into a private folder inside the live table's.

It writes plain Parquet, and the log is written without it: a Delta transaction takes twice as long as writing the rows
of a few days.

A large day is divided into parts: rows of a key stay together, and other days stay whole. On a cluster Spark plans
adaptively, and divides large partitions by itself, though only between the outputs of several tasks. On one machine
that costs a twentieth of the time of many small days, so it is used only where a day is known to be large.

Of few rows, Spark's writer takes a thousand times as long for the files of days as for the rows, and deals them out by
day before. It writes these rows together, and each day's file is made of them without it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, MapType, StructType, VariantType

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.staging_folders import log_stage
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.places import for_hadoop
from platform_assets.planning.steps import AS_ROWS, NO_PARTS
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.configuration import refuse_other_settings
from platform_assets.spark.session.on_demand import SparkOnDemand, is_one_process
from platform_assets.spark.tables.failures import TransformError, full_disk_explained
from platform_assets.spark.tables.lost import found_here
from platform_assets.spark.tables.reading import without_patterns
from platform_assets.spark.tables.schemas import column_problems, declared_types, with_columns

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 16_384
WRITER = {
    # Bounds of texts are prefixes; the log holds the smallest and greatest of every file
    "parquet.statistics.truncate.length": "32",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # No summary file with the footers of all others, which some clusters ask for
    "parquet.summary.metadata.level": "NONE",
}


def check_columns(table: str, frame: object, expected: StructType) -> None:
    """Refuse a frame whose columns or types differ from the contract's, naming each; nothing is cast silently."""
    if not isinstance(frame, DataFrame):
        raise TransformError(
            f"The transform of {table} returns {frame!r:.80}, not a frame.", "Return the DataFrame that it describes."
        )
    if problems := list(column_problems(declared_types(expected), declared_types(frame.schema))):
        raise TransformError(
            f"The transform of {table} does not return what its contract declares: {'; '.join(problems)}.",
            "Select and cast the columns in the transform, or correct the contract.",
        )


def stage(
    frame: DataFrame,
    folder: Location,
    *,
    clustered: bool = False,
    parts: Mapping[date, int] = NO_PARTS,
    small: bool = False,
) -> None:
    """Write rows as a Delta table of their own, one file per day and write; a large day gets several.

    Spark finds large days where it plans adaptively: on a cluster, and within `tasks_for`. Otherwise they must be
    named.

    Args:
        folder: the publication's folder inside the live table's; a second write adds to it.
        clustered: whether the rows are already partitioned like the files, so that no shuffle is needed.
        small: whether these are probably few rows.
    """
    refuse_other_settings(frame.sparkSession)
    frame = _with_one_zero(frame)
    is_small = small and is_one_process(frame.sparkSession) and isinstance(folder, Disk) and not _doubles(frame)
    with full_disk_explained(str(folder)):
        if is_small:
            with _rows_together(frame, folder) as (together, rows):
                if not _is_written_by_day(rows, folder):
                    _write(_by_day(together(), parts), folder)
        else:
            _write(frame if clustered else _by_day(frame, parts), folder)
        failpoint("stage.written")
        log_stage(folder, frame.schema.json())
        failpoint("stage.logged")


def _write(frame: DataFrame, folder: Location) -> None:
    address = str(folder) if is_sail(frame.sparkSession) else for_hadoop(str(folder))
    with found_here(frame.sparkSession, folder):
        frame.write.options(**WRITER).mode("append").partitionBy(DAY).parquet(address)


def _by_day(frame: DataFrame, parts: Mapping[date, int]) -> DataFrame:
    spark = frame.sparkSession
    if is_sail(spark):  # which knows no hints
        return frame.repartition(DAY)
    if parts:
        return in_parts(frame, parts, hashable(frame)).drop(SHARE)
    if not plans_while_it_works(spark):
        return frame.repartition(DAY)
    return frame.hint("rebalance", APART, DAY) if is_one_process(spark) else frame.hint("rebalance", DAY)


def _with_one_zero(frame: DataFrame) -> DataFrame:
    """Return zero for minus zero: one number, also to a digest, but not to a division or a text."""
    return with_columns(frame, {name: F.col(name) + F.lit(0.0) for name in _doubles(frame)})


def _doubles(frame: DataFrame) -> list[str]:
    return [field.name for field in frame.schema.fields if field.dataType == DoubleType()]


MOST_TOGETHER = 4 * 1024 * 1024
"""Bytes of rows that are dealt out to their days without Spark."""
FEW_BYTES = MOST_TOGETHER // 4
"""Bytes in files of which as many rows as were there, or were delivered, are surely dealt out so."""
_MANY_DAYS, _SMALL_DAY = 24, 16 * 1024


def are_small(days: int, read: int, before: Sequence[int]) -> bool:
    """Return whether some days probably get few rows: they had few, or are many and made of few.

    Args:
        read: bytes that they are made of.
        before: bytes of those that were there before.
    """
    size = sum(before)
    is_known = len(before) == days and size <= FEW_BYTES
    return is_known or (days >= _MANY_DAYS and read + size <= days * _SMALL_DAY)


_MOST_ROWS = 500_000
_MOST_MEMORY = 128 * 1024 * 1024
"""Rows and bytes of them in memory: equal values take hardly any bytes in files."""
_WRITTEN_BY = b"org.apache.spark.version"
"""What a file says for Spark 3 to read days and moments of long ago by the calendar that they were written by."""
_LONGEST_TEXT = 128
"""Bytes of a text that statistics may show whole, such as a file's name; only Spark's writer cuts longer ones."""


@contextmanager
def _rows_together(frame: DataFrame, folder: Location) -> Iterator[tuple[Callable[[], DataFrame], pa.Table | None]]:
    """Write rows into a few temporary files: as a frame, and as a table if they are few."""
    place = folder / "together"
    with found_here(frame.sparkSession, folder):
        frame.write.options(**WRITER).mode("overwrite").parquet(for_hadoop(str(place)))
    try:
        files = [place / name for name in sorted(place.names()) if name.endswith(".parquet")]
        rows = _as_table(files) if sum(file.size() or 0 for file in files) <= MOST_TOGETHER else None
        yield lambda: frame.sparkSession.read.schema(frame.schema).parquet(without_patterns(place)), rows
    finally:
        place.remove(durable=False)


def _as_table(files: Sequence[Location]) -> pa.Table | None:
    """Return the rows of some files; None if there are none, or not few."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    count = size = 0
    for file in files:
        for batch in row_batches(file, _BATCH_ROWS):
            batches.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count > _MOST_ROWS or size > _MOST_MEMORY:
                return None
    if not batches:
        return None
    rows = pa.Table.from_batches(batches)
    kept = {name: value for name, value in (rows.schema.metadata or {}).items() if name == _WRITTEN_BY}
    return rows.replace_schema_metadata(kept)


def _is_written_by_day(rows: pa.Table | None, folder: Location) -> bool:
    """Write a file for each day like Spark's writer; return False if its own statistics are needed."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import types

    if rows is None:
        return False
    dated = rows.filter(pc.is_valid(rows.column(DAY)))  # what has no day leaves the stage again
    texts = [field.name for field in rows.schema if types.is_string(field.type)]
    if any((pc.max(pc.binary_length(dated.column(name))).as_py() or 0) > _LONGEST_TEXT for name in texts):
        return False
    by_day = rows.sort_by(DAY).combine_chunks()
    try:
        days, counts = (column.to_pylist() for column in by_day.column(DAY).value_counts().flatten())
    except (ValueError, OverflowError):  # a day that is none to Python
        return False
    name, first = f"part-00000-{uuid4()}-c000.zstd.parquet", 0
    for day, count in zip(days, counts, strict=True):
        sink = io.BytesIO()
        of_day = by_day.slice(first, count).drop_columns(DAY)
        with pq.ParquetWriter(
            sink,
            of_day.schema,
            compression="zstd",
            store_decimal_as_integer=True,
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            writer.write_table(of_day)
            writer.add_key_value_metadata(rows.schema.metadata or {})
        at = Path(str(folder), f"{DAY}={'__HIVE_DEFAULT_PARTITION__' if day is None else day}")
        at.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(sink.getbuffer())
        first += count
    return True


_ADAPTIVE, _TASKS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
_PART = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_LEAST = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
_READ = "spark.sql.files.maxPartitionBytes"
_SPARKS_LEAST = 1024 * 1024

SHARE = "_share"
"""Of the rows of a large day, what one task has."""

APART = 400
"""Tasks among which days are dealt out before Spark cuts the large ones and joins the small: with one that is large, no
other should have to share."""

SPARSE = 4
"""Tasks per part where Spark merges empty tasks, so that few parts meet in one."""


@contextmanager
def tasks_for(spark: SparkOnDemand, parts: Mapping[date, int], part_bytes: int) -> Iterator[SparkOnDemand]:
    """Return Spark for work on large days: at least a task for each part, and adaptive planning.

    The session's settings are changed at the first use, and restored; nothing is changed without a large day.
    """
    before: dict[SparkSession, dict[str, str | None]] = {}

    def given() -> SparkSession:
        session = spark()
        if parts and session not in before and not is_sail(session):
            before[session] = {name: session.conf.get(name) for name in (_ADAPTIVE, _TASKS, _PART, _LEAST, _READ)}
            apart = 1 if is_one_process(session) else SPARSE
            tasks = max(sum(parts.values()) * apart, int(before[session][_TASKS] or 0))
            part, least = f"{part_bytes * AS_ROWS}b", f"{min(part_bytes, _SPARKS_LEAST)}b"
            # Spark cuts what it writes only between what several tasks have sent, and so none may read too much
            read = f"{max(part_bytes, _SPARKS_LEAST)}b"
            _set(session, {_ADAPTIVE: "true", _TASKS: str(tasks), _PART: part, _LEAST: least, _READ: read})
        return session

    try:
        yield given
    except Exception:  # after an interruption Java is asked for nothing more
        _put_back(before)
        raise
    _put_back(before)


def plans_while_it_works(spark: SparkSession) -> bool:
    """Return whether Spark divides large partitions while it works."""
    return not is_one_process(spark) or spark.conf.get(_ADAPTIVE) == "true"


def in_parts(frame: DataFrame, parts: Mapping[date, int], columns: Sequence[str]) -> DataFrame:
    """Return rows partitioned by day, large days also by a hash of some columns, which is added as `SHARE`.

    A window over days, these columns and the share needs no further shuffle: the share follows from the columns. On a
    cluster, where an empty task costs requests to a store, Spark may merge small tasks. At least one day has parts.
    """
    here = is_one_process(frame.sparkSession)
    tasks = max(sum(parts.values()), int(frame.sparkSession.conf.get(_TASKS) or 0))
    hashed = F.xxhash64(*columns)
    # Alone, a day takes all tasks evenly; several fill them by chance
    by_count = {count: [day for day in parts if parts[day] == count] for count in set(parts.values())}
    share = F.lit(0).cast("long")
    for count, days in by_count.items():
        of_large = hashed if here and count == tasks else F.pmod(hashed, F.lit(count))
        share = F.when(F.col(DAY).isin(days), of_large).otherwise(share)
    dealt = frame.withColumn(SHARE, share)
    return dealt.repartition(tasks, DAY, SHARE) if here else dealt.repartition(DAY, SHARE)


def hashable(frame: DataFrame) -> list[str]:
    """Return columns that distinguish rows and can be hashed."""
    nested = ArrayType | MapType | StructType | VariantType
    return [field.name for field in frame.schema.fields if not isinstance(field.dataType, nested)]


def _put_back(before: Mapping[SparkSession, Mapping[str, str | None]]) -> None:
    for session, values in before.items():
        with suppress(Py4JError, OSError):  # one that is gone keeps nothing
            _set(session, values)


def _set(spark: SparkSession, values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
