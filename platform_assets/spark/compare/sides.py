"""The two sides of a reconciliation in Spark: golden copies as frames, and what a side holds of each day."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Column, Contract
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.delta.commits import head_version
from platform_assets.lakehouse.layout import located
from platform_assets.places import folder_of
from platform_assets.records.differences import Key
from platform_assets.records.digest import Digest
from platform_assets.spark.compare.rules import as_text
from platform_assets.spark.raw.casting import cast, lost
from platform_assets.spark.tables.reading import without_patterns
from platform_assets.spark.tables.row_hash import digest_of, digest_sums
from platform_assets.words import counted


class SideError(PlatformError):
    """A side of a reconciliation is not there, or cannot be compared with the other one."""

    is_misspelt = True


def golden_copy(spark: SparkSession, place: str, contract: Contract) -> DataFrame:
    """Return the rows of a Parquet or Delta folder, or of a CSV, all of one moment.

    Args:
        place: a folder, a file that ends in .csv or .csv.gz, or the URL of one.
        contract: of the other side, whose types the texts of a CSV become.

    Raises:
        SideError: nothing is there, it cannot be read, or it has no day or values of other types.
    """
    folder = folder_of(place)
    there = located(folder.absolute() if folder else place)
    if not (there.exists() or there.names()):
        raise SideError(f"There is no golden copy at {place}.", "Name a folder of Parquet or Delta, or a .csv file.")
    path = without_patterns(there)
    is_csv = place.removesuffix(".gz").endswith(".csv")
    with readable([place], [place]):
        if is_csv:
            options: dict[str, bool | str] = {"header": True, "escape": '"', "multiLine": True, "mode": "FAILFAST"}
            rows = spark.read.options(**options, columnPruning=False).csv(path)
        elif (version := head_version(there)) >= 0:
            rows = spark.read.format("delta").option("versionAsOf", version).load(path)
        else:
            rows = spark.read.parquet(path)
        if DAY not in rows.columns:
            todo = f"{did_you_mean(DAY, rows.columns)}Write the day of each row as {DAY}, a date."
            raise SideError(f"The golden copy {place} has no column {DAY!r}.", todo)
        return _typed(rows, place, contract) if is_csv else rows


@contextmanager
def readable(sides: Collection[str], copies: Collection[str]) -> Iterator[None]:
    """Around what compares sides, of which some may be golden copies.

    Raises:
        SideError: Spark cannot read one, or cannot compare them.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred")]
        first = next(iter(lines), error)
        if not copies:
            todo = "`platform-assets doctor` looks at Spark, `platform-assets verify` at the tables."
            raise SideError(f"{' and '.join(sides)} cannot be compared: {first}", todo) from error
        is_empty = isinstance(error, PySparkException) and error.getCondition() == "UNABLE_TO_INFER_SCHEMA"
        what = f"{' or '.join(copies)} {'holds no Parquet file.' if is_empty else f'cannot be read: {first}'}"
        raise SideError(what, "Name a folder of Parquet files, of a Delta table, or a CSV with a header.") from error


def _typed(texts: DataFrame, place: str, contract: Contract) -> DataFrame:
    """Return the fields of a CSV as the contract's types; refuse values of which anything would be lost."""
    columns = [
        *(column for column in contract.columns if column.name in texts.columns),
        Column(DAY, "date", "The day."),
    ]
    typed = [f"{cast(f'`{column.name}`', 'string', column)} AS `{column.name}`" for column in columns]
    names = {column.name for column in columns}
    others = [f"`{name.replace('`', '``')}`" for name in texts.columns if name not in names]
    rows = texts.selectExpr(*typed, *others, *(f"`{name}` AS `given {name}`" for name in names))
    bad = [f"count_if({lost(f'`given {column.name}`', 'string', column)})" for column in columns]
    for column, count in zip(columns, rows.selectExpr(*bad).collect()[0], strict=True):
        if count:
            raise SideError(
                f"{place} has {counted(count, 'value')} of {column.name!r} that are no {column.type}, as "
                f"{contract.name} has it.",
                f"Write {column.name!r} as {column.type}, or leave the column out.",
            )
    return rows.drop(*(f"given {name}" for name in names))


def of_days(rows: DataFrame, days: Collection[date] | None) -> DataFrame:
    """Return the rows of some days; all of them by default."""
    return rows if days is None else rows.where(F.col(DAY).isin(sorted(days)))


def day_digests(rows: DataFrame, columns: Sequence[str]) -> dict[date, Digest]:
    """Return what each day holds in some columns, whatever the order of its rows."""
    figures = rows.groupBy(DAY).agg(F.expr("count(1) AS _rows"), *digest_sums(columns)).collect()
    return {row[DAY]: digest_of(row, row["_rows"]) for row in figures}


def day_sums(rows: DataFrame, scales: Mapping[str, int]) -> dict[date, dict[str, Decimal | None]]:
    """Return the sums of some columns of each day; None where a sum has too many digits."""
    figures = grouped(rows, (), scales).collect() if scales else []
    return {row[DAY]: {name: row[name] for name in scales} for row in figures}


def grouped(rows: DataFrame, by: Sequence[str], scales: Mapping[str, int]) -> DataFrame:
    """Return one row for each day and group, with the sums of some columns.

    Args:
        scales: digits after the point, by column to sum; the same on both sides.
    """
    sums = (f"try_sum(CAST(`{name}` AS decimal(38,{scale}))) AS `{name}`" for name, scale in scales.items())
    return rows.groupBy(*dict.fromkeys((DAY, *by))).agg(*map(F.expr, sums))


def arrivals_of_keys(
    raw: DataFrame, key: Sequence[str], wanted: Collection[tuple[date, Key]]
) -> dict[tuple[date, Key], tuple[str, ...]]:
    """Return which arrivals brought rows of some keys, by day and key.

    Args:
        wanted: days and values of the key, as text.
    """
    text = json.dumps([{"_on": str(day), "_wanted": values} for day, values in wanted])
    schema = "array<struct<_on: date, _wanted: array<string>>>"
    asked = raw.sparkSession.range(1).select(F.inline(F.from_json(F.lit(text), schema)))
    texts = raw.select(DAY, F.array(*as_text(key)).alias("_key"), "_arrival")
    is_asked = (F.col(DAY) == F.col("_on")) & (F.col("_key") == F.col("_wanted"))
    found = texts.join(F.broadcast(asked), is_asked, "left_semi").groupBy(DAY, "_key")
    rows = found.agg(F.array_sort(F.collect_set("_arrival")).alias("_arrivals")).collect()
    return {(row[DAY], tuple(row["_key"])): tuple(row["_arrivals"]) for row in rows}
