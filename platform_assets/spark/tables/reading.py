"""Read in Spark: exactly the requested days of released tables, rows of some keys, stages, cached frames, and views.

The log is read without Spark and names the files; Spark reads those as plain Parquet. Unfolding a table's log and
listing its files by Delta takes two to four jobs a read, a third of the time of a small correction.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import spark_view, statements, tables_without_view
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import for_hadoop
from platform_assets.planning.selection import KeyScope, value_of
from platform_assets.records.manifest import DataFile
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.on_demand import is_one_process
from platform_assets.spark.tables.failures import explain_unreadable_session

Keep = Callable[[DataFrame], DataFrame]
"""Gives a frame with the same rows that is computed only once."""


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a frame without rows, planned in the JVM: an empty list would start a Python worker."""
    nulls = (f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in schema.fields)
    return spark.range(0).selectExpr(*nulls)


def in_ranges(spans: Iterable[tuple[date, date]]) -> Column:
    """Return a predicate for days in some ranges, by which Delta prunes partitions."""
    day = F.col(DAY)
    parts = [(day == F.lit(start)) if start == end else day.between(F.lit(start), F.lit(end)) for start, end in spans]
    return reduce(lambda a, b: a | b, parts, F.lit(False)) if parts else F.lit(False)


def read_days(
    spark: SparkSession,
    path: Location,
    files: Mapping[date, Sequence[DataFile]],
    schema: StructType,
    spans: Iterable[tuple[date, date]],
) -> DataFrame:
    """Return the days of some ranges of a table, both ends included, from the files of its days.

    A table that was never published has none, and reads as no rows.
    """
    spans = tuple(spans)
    wanted = [
        file.path
        for day, of_day in files.items()
        if any(start <= day <= end for start, end in spans)
        for file in of_day
    ]
    return read_files(spark, path, wanted, schema)


def read_staged(spark: SparkSession, folder: Location) -> DataFrame:
    """Return the rows of a stage's folder, from the files of its log; refuse a folder without a stage."""
    staged = table_snapshot(folder)
    schema = StructType.fromJson(json.loads(staged.schema_string))
    return read_files(spark, folder, staged.files, schema)


def read_files(spark: SparkSession, folder: Location, paths: Collection[str], schema: StructType) -> DataFrame:
    """Return the rows of some files of a table, each with the day of its folder.

    Their paths start at the day's folder, below the folders of several publications.
    """
    if not paths:
        return no_rows(spark, schema)
    if is_sail(spark):
        return _read_by_day(spark, folder, paths, schema)
    reader = (
        spark.read.schema(schema)
        .option("basePath", for_hadoop(str(folder)))
        .option("ignoreInvalidPartitionPaths", True)
    )
    rows = reader.parquet(*(without_patterns(folder / path) for path in paths))
    # Spark puts the day behind the columns that lie in the files, where nearly every schema has it.
    return rows if rows.columns == schema.fieldNames() else rows.select(*schema.fieldNames())


def _read_by_day(spark: SparkSession, folder: Location, paths: Collection[str], schema: StructType) -> DataFrame:
    """Return the same for Sail, which takes no day from a folder's name if it is given files.

    It works on all days at once, each with memory of its own, unless they are set to follow each other.
    """
    by_day: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_day[Path(path).parent.name.removeprefix(f"{DAY}=")].append(str(folder / path))
    in_files = StructType([field for field in schema.fields if field.name != DAY])
    days = [
        spark.read.schema(in_files).parquet(*of_day).withColumn(DAY, F.lit(date.fromisoformat(day)))
        for day, of_day in sorted(by_day.items())
    ]
    while len(days) > 1:  # in pairs: a year's days one into the other are deeper than a server unfolds
        days = [reduce(DataFrame.unionAll, days[at : at + 2]) for at in range(0, len(days), 2)]
    return days[0].select(*schema.fieldNames()).coalesce(os.cpu_count() or 1)


def without_patterns(path: Location) -> str:
    """Return a path with Hadoop's pattern characters escaped."""
    return re.sub(r"([*?{}])", r"\\\1", for_hadoop(str(path)))


def in_scope(contract: Contract, scope: KeyScope, among: Collection[str]) -> Column:
    """Return whether a row matches the keys, by the columns that it has; values are bound, never part of a text."""
    parts = [
        F.col(name).isin([value_of(text, contract.column(name).type) for text in texts])
        for name, texts in scope.keys
        if name in among
    ]
    return reduce(lambda a, b: a & b, parts, F.lit(True))


def out_of_scope(contract: Contract, scope: KeyScope) -> Column:
    """Return whether a row of the table matches none of the keys; one without a value matches none."""
    return ~F.coalesce(in_scope(contract, scope, contract.column_names), F.lit(False))


@contextmanager
def kept_frames() -> Iterator[Keep]:
    """Cache frames in this block.

    If Spark is one process, they are cut from their plans, which spares planning again. On a cluster a lost executor
    would lose them: there Spark remembers how to recompute them.
    """
    persisted: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        if is_sail(frame.sparkSession):
            return frame  # it keeps none, and computes them again
        if is_one_process(frame.sparkSession):
            return frame.localCheckpoint()
        persisted.append(frame.persist())
        return persisted[-1]

    try:
        yield keep
    finally:
        for frame in persisted:
            frame.unpersist()


def register_views(spark: SparkSession, lake: Lake, release: Release) -> None:
    """Register every table of a release as a view `<layer>_<table>`, and no newer table.

    Raises:
        DamagedTableError: files of that release are gone; the views are unchanged.
        LakeError: this session cannot read a lake; the message says what it lacks.
    """
    with explain_unreadable_session(spark):
        for statement in list(statements(lake, release, "spark")):
            spark.sql(statement)
    for table in tables_without_view(lake, release):
        spark.catalog.dropTempView(spark_view(table))
