"""Staged writes: Spark puts the computed days into a private folder inside the live table's.

It writes plain Parquet, and the log is written without it: a Delta transaction takes twice as long as writing the rows
of a few days.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructType

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.staging_folders import log_stage
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import for_hadoop
from platform_assets.planning.steps import NO_PARTS
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.cluster import is_one_process
from platform_assets.spark.session.configuration import refuse_other_settings
from platform_assets.spark.tables.failures import TransformError, full_disk_explained
from platform_assets.spark.tables.lost import found_here
from platform_assets.spark.tables.parts import APART, SHARE, hashable, in_parts, plans_while_it_works
from platform_assets.spark.tables.schemas import declared_types, with_columns

_WRITER = {
    # Texts are told apart by their beginnings; the log holds the smallest and greatest of every file
    "parquet.statistics.truncate.length": "32",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Nor a file with what is known of all others, smallest and greatest values too, as some clusters ask for
    "parquet.summary.metadata.level": "NONE",
}


def check_columns(table: str, frame: object, expected: StructType) -> None:
    """Refuse a frame whose columns or types differ from the contract's; nothing is cast silently.

    Raises:
        TransformError: naming every column that is missing, not declared or of another type.
    """
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
        frame: rows with `event_date`.
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
