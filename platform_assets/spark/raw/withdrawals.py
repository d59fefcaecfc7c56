"""Arrivals taken back: raw keeps their rows, and a marker on each of their days says that they count no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY
from platform_assets.records.row_kinds import TOMBSTONE, WITHDRAWAL

RowBalances = Mapping[date, Mapping[str, int]]


def effective_rows(raw: DataFrame) -> DataFrame:
    """The raw rows that count: without withdrawals and without the rows, tombstones too, of what they take back."""
    kept = raw.where(F.col("_kind") != WITHDRAWAL).join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_anti")
    return kept.select(*raw.columns)


def withdrawn_rows(raw: DataFrame) -> dict[date, int]:
    """How many delivered rows count no more, by day."""
    return delivered_rows(raw.join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_semi"))


def delivered_rows(raw: DataFrame) -> dict[date, int]:
    """Count rows by day, tombstones and withdrawals left out."""
    counts = raw.where(_is_delivered()).groupBy(DAY).count().collect()
    return {row[DAY]: row["count"] for row in counts}


def newest_deliveries(raw: DataFrame) -> DataFrame:
    """Return the rows of each day's newest arrival date, of a source whose arrivals replace the days they bring."""
    newest = raw.where(_is_delivered()).groupBy(DAY).agg(F.max("_arrival_date").alias("_arrival_date"))
    return raw.join(F.broadcast(newest), [DAY, "_arrival_date"]).select(*raw.columns)


def with_withdrawn(row_balances: RowBalances, withdrawn: Mapping[date, int]) -> dict[date, dict[str, int]]:
    """What becomes of all raw rows of each day, from the fates of those that count and the number of the others."""
    names = ("raw", "quarantined", "voided", "expected", "keys", "keys_quarantined", "rivals", "most_versions")
    nothing = dict.fromkeys(names, 0)
    return {
        day: {**(balance := row_balances.get(day, nothing)), "raw": balance["raw"] + withdrawn.get(day, 0)}
        | {"withdrawn": withdrawn.get(day, 0)}
        for day in row_balances.keys() | withdrawn.keys()
    }


def taken_back(raw: DataFrame, arrivals: Collection[str]) -> dict[tuple[date, str], int]:
    """On which days some arrivals have rows that count, and how many were delivered; tombstones are none of those."""
    per_arrival = raw.where(F.col("_arrival").isin(*arrivals)).groupBy(DAY, "_arrival")
    return {
        (row[DAY], row["_arrival"]): row["rows"]
        for row in per_arrival.agg(F.count_if(_is_delivered()).alias("rows")).collect()
    }


def withdrawals(raw: DataFrame, arrivals: Collection[str], schema: StructType) -> DataFrame:
    """The markers that take back some arrivals on the days on which they have rows that count."""
    pairs = raw.where(F.col("_arrival").isin(*arrivals)).select(DAY, "_arrival").distinct()
    return as_raw(pairs.withColumn("_kind", F.lit(WITHDRAWAL)), schema)


def as_raw(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows with the columns of raw, null where they have none of that name."""
    lacking = [
        F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields if field.name not in rows.columns
    ]
    return rows.select("*", *lacking).select(*schema.fieldNames())


def _markers(raw: DataFrame) -> DataFrame:
    return raw.where(F.col("_kind") == WITHDRAWAL).select(DAY, "_arrival")


def _is_delivered() -> Column:
    return ~F.col("_kind").isin(TOMBSTONE, WITHDRAWAL)
