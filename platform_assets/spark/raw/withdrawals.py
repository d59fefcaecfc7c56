"""Arrivals taken back or replaced: raw keeps their rows, and a marker says on which days they count no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract
from platform_assets.records.row_kinds import RECORD, TOMBSTONE, VOID, WITHDRAWAL

_ON = "_on"


def is_undated(source: Contract) -> Column:
    """Tell whether a raw row is a delete without event time.

    Such a delete is a void on the day it arrived. Which days it reaches follows from it and the records alone, so that
    it makes no difference which of them is taken first.
    """
    assert source.event_time is not None
    return (F.col("_kind") == VOID) & F.isnull(source.event_time)


def reached(deletes: DataFrame, raw: DataFrame, source: Contract) -> DataFrame:
    """Return deletes that are `is_undated` with each day `_on` that has a record of their key within their reach."""
    records = raw.where(F.col("_kind") == RECORD).select(*source.key, F.col(DAY).alias(_ON)).distinct()
    return deletes.join(records, list(source.key)).where(takes(source, _ON))


def takes(source: Contract, day: str) -> Column:
    """Tell whether a raw table takes rows of the day in a column unasked, from what arrived on `_arrival_date`."""
    is_taken = F.date_diff("_arrival_date", day).between(-source.ahead_days, source.restatement_window_days)
    for closed in source.protected:
        is_closed = F.col(day).between(F.lit(closed.first), F.lit(closed.last))
        is_taken &= ~(is_closed & (F.col("_arrival_date") > F.lit(closed.since)))
    return is_taken


def tombstones(pairs: DataFrame) -> DataFrame:
    """Return the tombstones by which other days know of the deletes that have `reached` them."""
    copies = {"_kind": F.lit(TOMBSTONE), "_rescued": F.lit(None).cast("string"), "_order_day": F.col(_ON)}
    return pairs.where(F.col(_ON) != F.col(DAY)).withColumns({**copies, DAY: F.col(_ON)}).drop(_ON)


def waiting(deletes: DataFrame, pairs: DataFrame, source: Contract) -> Mapping[str, int]:
    """Count the keys of deletes that have `reached` no record yet, by arrival."""
    per_key = deletes.select("_arrival", *source.key).distinct()
    without = per_key.join(pairs, ["_arrival", *source.key], "left_anti")
    return {row["_arrival"]: row["count"] for row in without.groupBy("_arrival").count().collect()}


RowBalances = Mapping[date, Mapping[str, int]]


def effective_rows(raw: DataFrame) -> DataFrame:
    """Return the raw rows that count: without withdrawals, and without what they take back, tombstones too."""
    kept = raw.where(F.col("_kind") != WITHDRAWAL).join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_anti")
    return kept.select(*raw.columns)


def withdrawn_rows(raw: DataFrame) -> dict[date, int]:
    """Return how many delivered rows count no more, by day."""
    return delivered_rows(raw.join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_semi"))


def delivered_rows(raw: DataFrame) -> dict[date, int]:
    """Count rows by day, tombstones and withdrawals left out."""
    counts = raw.where(_is_delivered()).groupBy(DAY).count().collect()
    return {row[DAY]: row["count"] for row in counts}


def newest_deliveries(raw: DataFrame) -> DataFrame:
    """Return the rows of each day's newest arrival date, of a source whose arrivals replace others.

    Where that has only `absences`, none is left.
    """
    is_deciding = _is_delivered() | F.isnull("_order_day")
    newest = raw.where(is_deciding).groupBy(DAY).agg(F.max("_arrival_date").alias("_arrival_date"))
    return raw.join(F.broadcast(newest), [DAY, "_arrival_date"]).select(*raw.columns)


def absences(lying: DataFrame, source: Contract) -> DataFrame:
    """Return a tombstone of no day of order, and no key, for each arrival without a row of a day that an older one has.

    Args:
        lying: `DAY`, `_arrival`, `_arrival_date` and `_kind` of all raw rows that count, those being ingested included.
        source: contract of the raw table, whose arrivals are snapshots of all of it.
    """
    delivered = lying.where(_is_delivered())
    days = delivered.groupBy(DAY).agg(F.min("_arrival_date").alias("_oldest"))
    pairs = delivered.select("_arrival", "_arrival_date").distinct().join(days)
    lacking = pairs.where((F.col("_arrival_date") > F.col("_oldest")) & takes(source, DAY))
    lacking = lacking.join(lying, [DAY, "_arrival"], "left_anti").drop("_oldest")
    return lacking.withColumn("_kind", F.lit(TOMBSTONE))


def with_withdrawn(
    row_balances: RowBalances, withdrawn: Mapping[date, int], delivered: Mapping[date, int]
) -> dict[date, dict[str, int]]:
    """Return what becomes of all raw rows of each day.

    Args:
        row_balances: of rows that are neither withdrawn nor replaced.
        withdrawn: how many are.
        delivered: how many are not withdrawn, of days where that may be more than the balance has.
    """
    names = ("raw", "quarantined", "voided", "expected", "keys", "keys_quarantined", "rivals", "most_versions")
    nothing = dict.fromkeys(names, 0)
    return {
        day: dict(balance := row_balances.get(day, nothing))
        | {"raw": (whole := delivered.get(day, balance["raw"])) + withdrawn.get(day, 0)}
        | {"withdrawn": withdrawn.get(day, 0), "replaced": whole - balance["raw"]}
        for day in row_balances.keys() | withdrawn.keys() | delivered.keys()
    }


def taken_back(raw: DataFrame, arrivals: Collection[str]) -> dict[tuple[date, str], int]:
    """On which days some arrivals have rows that count, and how many were delivered; tombstones are none of those."""
    per_arrival = raw.where(F.col("_arrival").isin(*arrivals)).groupBy(DAY, "_arrival")
    return {
        (row[DAY], row["_arrival"]): row["rows"]
        for row in per_arrival.agg(F.count_if(_is_delivered()).alias("rows")).collect()
    }


def withdrawals(raw: DataFrame, arrivals: Collection[str], schema: StructType) -> DataFrame:
    """Return the markers that take back some arrivals on the days on which they have rows that count."""
    pairs = raw.where(F.col("_arrival").isin(*arrivals)).select(DAY, "_arrival").distinct()
    return as_raw(pairs.withColumn("_kind", F.lit(WITHDRAWAL)), schema)


def as_raw(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with the columns of raw, null where they have none of that name."""
    lacking = [
        F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields if field.name not in rows.columns
    ]
    return rows.select("*", *lacking).select(*schema.fieldNames())


def _markers(raw: DataFrame) -> DataFrame:
    return raw.where(F.col("_kind") == WITHDRAWAL).select(DAY, "_arrival")


def _is_delivered() -> Column:
    return ~F.col("_kind").isin(TOMBSTONE, WITHDRAWAL)
