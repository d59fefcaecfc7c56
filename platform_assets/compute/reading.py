"""Reading released tables in Spark: exactly the days asked for, at a version resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame without rows, planned in the JVM: a list of none would start a Python worker."""
    return spark.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields))


def in_ranges(spans: Iterable[tuple[date, date]]) -> Column:
    """The days of some ranges, as a predicate Delta prunes partitions with."""
    day = F.col(DAY)
    parts = [(day == F.lit(start)) if start == end else day.between(F.lit(start), F.lit(end)) for start, end in spans]
    return reduce(lambda a, b: a | b, parts, F.lit(False)) if parts else F.lit(False)


def read_days(
    spark: SparkSession,
    path: Path,
    version: int | None,
    schema: StructType,
    spans: Iterable[tuple[date, date]],
) -> DataFrame:
    """Some days of a table at a version.

    Args:
        spark: session.
        path: of the table.
        version: Delta version; None where the table was never published, which reads as no rows.
        schema: columns to return, the day included.
        spans: first and last day of each range, both included.
    """
    spans = tuple(spans)
    if version is None or not spans:
        return no_rows(spark, schema)
    frame = spark.read.format("delta").option("versionAsOf", version).load(str(path))
    return frame.where(in_ranges(spans)).select(*schema.fieldNames())
