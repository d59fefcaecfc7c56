"""Tables of another tool that are adopted: Delta tables with any features that Spark reads, at one version."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from platform_assets.contracts import DAY
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.delta.commits import head_version
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import folder_of, for_hadoop
from platform_assets.planning.windows import ranges
from platform_assets.records.raw_rows import RECORD, VOID
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.lost import found_here
from platform_assets.spark.tables.reading import in_ranges
from platform_assets.spark.tables.schemas import declared_types
from platform_assets.spark.tables.staging import WRITER


class AdoptionError(PlatformError):
    """A table of another tool cannot become one of the platform; nothing of it is visible."""


@dataclass(frozen=True)
class Original:
    """A Delta table of another tool.

    Args:
        version: that all its rows are read from, whatever is written to it meanwhile.
        features: that its protocol names, sorted; empty for one that names none.
        types: of its columns, in a contract's words.
        rows: all of them, not read yet.
    """

    place: str
    table_id: str
    version: int
    features: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    types: dict[str, str]
    rows: DataFrame

    def __str__(self) -> str:
        return f"{self.place} at version {self.version}"


def placed(place: str) -> Location:
    """Return where a table is that a person names: a folder, also from here, or a URL."""
    folder = folder_of(place)
    return located(folder.absolute() if folder else place)


def original(spark: SparkOnDemand, place: str) -> Original:
    """Open a Delta table at its newest version; Spark starts if there is one.

    Raises:
        AdoptionError: there is none, or Spark cannot read it.
    """
    there = placed(place)
    if (version := head_version(there)) < 0:
        raise AdoptionError(
            f"There is no Delta table at {place}.",
            "Name the folder that has its _delta_log. Parquet files without a log become one by Spark's CONVERT TO "
            "DELTA; or deliver files to a raw table's landing folder.",
        )
    path = for_hadoop(str(there))
    with readable_original(place):
        rows = spark().read.format("delta").option("versionAsOf", version).load(path)
        detail = spark().sql(f"DESCRIBE DETAIL delta.`{path.replace('`', '``')}`").collect()[0]
        types = declared_types(rows.schema)
    features, keys = tuple(sorted(detail["tableFeatures"] or ())), tuple(detail["partitionColumns"])
    return Original(str(there), detail["id"], version, features, keys, types, rows)


@contextmanager
def readable_original(place: str) -> Iterator[None]:
    """Name the table that Spark cannot read, with the reason that Spark gives."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred")]
        raise AdoptionError(
            f"{place} cannot be read: {next(iter(lines), error)}",
            "If it has a feature that this Delta does not know, drop that (ALTER TABLE … DROP FEATURE), or copy the "
            "table with the tool that wrote it.",
        ) from error


def with_day(table: Original, column: str, zone: str | None = None) -> DataFrame:
    """Return the rows of a table, each with its day as `event_date`.

    Args:
        column: a date, or a timestamp whose date is the day: the UTC date, or that in a time zone.

    Raises:
        AdoptionError: there is no such column, or no day in it.
    """
    types = {field.name: field.dataType for field in table.rows.schema}
    value: Column = F.col(f"`{column}`")
    match types.get(column):
        case DateType():
            return table.rows.withColumn(DAY, value)
        case TimestampType():
            local = F.from_utc_timestamp(value, zone) if zone else value
            return table.rows.withColumn(DAY, F.to_date(local))
        case TimestampNTZType():
            return table.rows.withColumn(DAY, F.to_date(value))
        case None:
            dated = [name for name, type_ in table.types.items() if type_.startswith(("date", "timestamp"))]
            raise AdoptionError(
                f"{table.place} has no column {column!r} with the day of each row.",
                f"{did_you_mean(column, dated)}Name one with --on: {', '.join(dated) or 'it has no date at all'}.",
            )
    raise AdoptionError(
        f"{column!r} of {table.place} is {table.types[column]}, and the day of a row is a date or a timestamp.",
        "Name such a column with --on.",
    )


def rows_of_days(rows: DataFrame, names: Mapping[str, str], days: Collection[date] | None = None) -> DataFrame:
    """Return the rows of some days in some columns, each under the name that it is to have, and the day.

    All days by default, with rows that have none.
    """
    asked = rows if days is None else rows.where(in_ranges(ranges(days)))
    return asked.select(*(F.col(f"`{name}`").alias(new) for name, new in names.items()), DAY)


def of_arrivals(raw: DataFrame, paths: Collection[str]) -> DataFrame:
    """Return the rows of a raw table that some files delivered, without those that say what became of others."""
    return raw.where(F.col("_arrival").isin(sorted(paths)) & F.col("_kind").isin(RECORD, VOID))


def delivered_by(raw: DataFrame) -> dict[date, set[str]]:
    """Return which arrivals brought the rows of each day of a raw table."""
    rows = raw.where(F.col("_kind").isin(RECORD, VOID)).select(DAY, "_arrival").distinct()
    arrivals: dict[date, set[str]] = {}
    for row in rows.collect():
        arrivals.setdefault(row[DAY], set()).add(row["_arrival"])
    return arrivals


def written_by_day(rows: DataFrame, folder: Path) -> dict[date, Path]:
    """Write rows into an empty folder, one Parquet file for each day without the day in it, and return the files."""
    place = located(folder)
    with found_here(rows.sparkSession, place):
        frame = rows.repartition(DAY).write.options(**WRITER).mode("overwrite").partitionBy(DAY)
        frame.parquet(for_hadoop(str(place)))
    written: dict[date, Path] = {}
    for file in sorted(folder.glob(f"{DAY}=*/*.parquet")):
        day = date.fromisoformat(file.parent.name.removeprefix(f"{DAY}="))
        if written.setdefault(day, file) != file:
            raise AdoptionError(
                f"Spark wrote the rows of {day} into several files, because of its settings.",
                "Take spark.sql.files.maxRecordsPerFile out of PLATFORM_SPARK_CONF and run the same again.",
            )
        with file.open("rb") as content:
            os.fsync(content.fileno())
    return written
