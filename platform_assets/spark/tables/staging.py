"""Staged writes: Spark puts the computed days into a private folder inside the live table's.

It writes plain Parquet, and the log is written without it: a Delta transaction takes twice as long as writing the rows
of a few days.

A large day is cut into parts: rows of a key stay together, and days that are not large stay whole. On a cluster Spark
plans anew while it works, and cuts what turns out to be large by itself, though only between what several tasks have
sent. On one machine that costs a twentieth of the time of many small days, so that it is asked to only where a day is
known to be large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, MapType, StructType, VariantType

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.staging_folders import log_stage
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import for_hadoop
from platform_assets.planning.steps import AS_ROWS, NO_PARTS
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.configuration import refuse_other_settings
from platform_assets.spark.session.on_demand import SparkOnDemand, is_one_process
from platform_assets.spark.tables.failures import TransformError, full_disk_explained
from platform_assets.spark.tables.lost import found_here
from platform_assets.spark.tables.schemas import declared_types, with_columns

_WRITER = {
    # Texts are told apart by their beginnings; the log holds the smallest and greatest of every file
    "parquet.statistics.truncate.length": "32",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Nor a file with what is known of all others, smallest and greatest values too, as some clusters ask for
    "parquet.summary.metadata.level": "NONE",
}


def check_columns(table: str, frame: object, expected: StructType) -> None:
    """Refuse a frame whose columns or types differ from the contract's, by every column; nothing is cast silently."""
    if not isinstance(frame, DataFrame):
        raise TransformError(
            f"The transform of {table} returns {frame!r:.80}, not a frame.", "Return the DataFrame that it describes."
        )
    got, wanted = declared_types(frame.schema), declared_types(expected)
    problems = [f"{name} is missing" for name in wanted if name not in got]
    problems += [f"{name} is not declared" for name in got if name not in wanted]
    problems += [f"{n} is {got[n]}, declared {wanted[n]}" for n in wanted if n in got and got[n] != wanted[n]]
    if problems:
        raise TransformError(
            f"The transform of {table} does not return what its contract declares: {'; '.join(problems)}.",
            "Select and cast the columns in the transform, or correct the contract.",
        )


def stage(frame: DataFrame, folder: Location, *, clustered: bool = False, parts: Mapping[date, int] = NO_PARTS) -> None:
    """Write rows as a Delta table of their own, one file per day and write; a large day gets several.

    Which days are large, Spark finds out where it plans while it works: on a cluster, and within `tasks_for`. Else it
    has to be said.

    Args:
        folder: the publication's folder inside the live table's; a second write adds to it.
        clustered: the rows already lie in Spark's partitions as they are to lie in files, so no shuffle is needed.
    """
    refuse_other_settings(frame.sparkSession)
    frame = _with_one_zero(frame)
    if not clustered:
        frame = _by_day(frame, parts)
    address = str(folder) if is_sail(frame.sparkSession) else for_hadoop(str(folder))
    with full_disk_explained(str(folder)):
        with found_here(frame.sparkSession, folder):
            frame.write.options(**_WRITER).mode("append").partitionBy(DAY).parquet(address)
        failpoint("stage.written")
        log_stage(folder, frame.schema.json())
        failpoint("stage.logged")


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
    """Zero for minus zero: one number, also to a digest, but not to what divides by it or makes a text of it."""
    doubles = [field.name for field in frame.schema.fields if field.dataType == DoubleType()]
    return with_columns(frame, {name: F.col(name) + F.lit(0.0) for name in doubles})


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
"""How many times as many tasks as parts these are dealt out among where Spark joins what is empty: few then meet."""


@contextmanager
def tasks_for(spark: SparkOnDemand, parts: Mapping[date, int], part_bytes: int) -> Iterator[SparkOnDemand]:
    """Spark for work on large days: it has a task for each part at least, and plans while it works.

    The session's settings are changed with its first use, and put back; nothing is changed where no day is large.
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
    """Return whether Spark cuts what turns out to be large while it works."""
    return not is_one_process(spark) or spark.conf.get(_ADAPTIVE) == "true"


def in_parts(frame: DataFrame, parts: Mapping[date, int], columns: Sequence[str]) -> DataFrame:
    """Return rows dealt out by day, those of large days by day and a hash of some columns, which is added as `SHARE`.

    A window over days, these columns and the share needs no further shuffle; the share tells nothing that the columns
    do not. On a cluster, where a task that has nothing costs requests to a store, Spark may join those with little.
    At least one day has parts.
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
    """Return columns that tell rows apart and can be hashed."""
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
