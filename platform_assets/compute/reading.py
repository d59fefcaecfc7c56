"""Reading in Spark: of released tables exactly the days asked for, at a version resolved beforehand; and stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY
from platform_assets.lakehouse.log import snapshot


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


def read_staged(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows of a stage's folder, from the files that its log names.

    Read as Parquet: to have Delta unfold a log that is read a few times and then never takes longer than to read the
    rows of a few days, and keeps megabytes of plans.

    Raises:
        DamagedTableError: nothing was staged there.
    """
    staged = snapshot(folder)
    schema = StructType.fromJson(json.loads(staged.schema_string))
    if not staged.files:
        return no_rows(spark, schema)
    files = [_without_patterns(folder / path) for path in staged.files]
    return spark.read.schema(schema).option("basePath", str(folder)).parquet(*files).select(*schema.fieldNames())


def read_files(spark: SparkSession, table_path: Path, paths: Iterable[str], schema: StructType) -> DataFrame:
    """The rows of some files of a table, each with the day that its folder says.

    Args:
        spark: session.
        table_path: folder of the table.
        paths: of the files, from there; at least one.
        schema: columns of the table, the day included.
    """
    held = StructType([field for field in schema.fields if field.name != DAY])
    # As many folders as publications: Spark would look for one tree of partitions over all of them.
    reader = spark.read.schema(held).option("recursiveFileLookup", "true")
    rows = reader.parquet(*(_without_patterns(table_path / path) for path in paths))
    day = F.regexp_extract(F.col("_metadata.file_path"), rf"/{DAY}=(\d{{4}}-\d{{2}}-\d{{2}})/[^/]+$", 1)
    return rows.withColumn(DAY, day.cast("date")).select(*schema.fieldNames())


def _without_patterns(path: Path) -> str:
    """A path as Hadoop reads it where it would find patterns in it."""
    return re.sub(r"([*?{}])", r"\\\1", str(path))
