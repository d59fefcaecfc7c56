"""Rows of raw that were not delivered: withdrawal markers and tombstones of versions on other days.

Raw keeps the rows of a withdrawn or replaced arrival; they no longer count on the days with its marker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract
from platform_assets.records.raw_rows import RECORD, TOMBSTONE, VOID, WITHDRAWAL
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.tables.reading import Keep

_ON = "_on"


def is_undated(source: Contract) -> Column:
    """Return whether a raw row is a delete without event time.

    Such a delete is a void on its arrival day. The days that it reaches follow from it and the records alone, in any
    order of ingestion.
    """
    assert source.event_time is not None
    return (F.col("_kind") == VOID) & F.isnull(source.event_time)


def reached_deletes(deletes: DataFrame, raw: DataFrame, source: Contract) -> DataFrame:
    """Return `is_undated` deletes with each day `_on` that has a record of their key within their reach."""
    records = raw.where(F.col("_kind") == RECORD).select(*source.key, F.col(DAY).alias(_ON)).distinct()
    return deletes.join(records, list(source.key)).where(takes(source, _ON))


def takes(source: Contract, day: str) -> Column:
    """Return whether a raw table accepts rows of a day without approval, if they arrived on `_arrival_date`."""
    is_taken = F.date_diff("_arrival_date", day).between(-source.ahead_days, source.restatement_window_days)
    for closed in source.protected:
        is_closed = F.col(day).between(F.lit(closed.first), F.lit(closed.last))
        is_taken &= ~(is_closed & (F.col("_arrival_date") > F.lit(closed.since)))
    return is_taken


def tombstones_of_deletes(pairs: DataFrame) -> DataFrame:
    """Return the tombstones of deletes on the days that they have reached."""
    copies = {"_kind": F.lit(TOMBSTONE), "_rescued": F.lit(None).cast("string"), "_order_day": F.col(_ON)}
    return pairs.where(F.col(_ON) != F.col(DAY)).withColumns({**copies, DAY: F.col(_ON)}).drop(_ON)


def waiting_deletes(deletes: DataFrame, pairs: DataFrame, source: Contract) -> Mapping[str, int]:
    """Count the keys of deletes that have reached no record yet, by arrival."""
    per_key = deletes.select("_arrival", *source.key).distinct()
    without = per_key.join(pairs, ["_arrival", *source.key], "left_anti")
    return {row["_arrival"]: row["count"] for row in without.groupBy("_arrival").count().collect()}


RowBalances = Mapping[date, Mapping[str, int]]


def effective_rows(raw: DataFrame) -> DataFrame:
    """Return the raw rows that count: without withdrawal markers and withdrawn rows, including their tombstones."""
    kept = raw.where(F.col("_kind") != WITHDRAWAL).join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_anti")
    return kept.select(*raw.columns)


def withdrawn_rows(raw: DataFrame) -> dict[date, int]:
    """Return how many delivered rows no longer count, by day."""
    return delivered_rows(raw.join(F.broadcast(_markers(raw)), [DAY, "_arrival"], "left_semi"))


def delivered_rows(raw: DataFrame) -> dict[date, int]:
    """Count rows by day, without tombstones and withdrawal markers."""
    counts = raw.where(_is_delivered()).groupBy(DAY).count().collect()
    return {row[DAY]: row["count"] for row in counts}


def newest_deliveries(raw: DataFrame) -> DataFrame:
    """Return the rows of each day's newest arrival date, for a source whose arrivals replace others.

    If that arrival has only `absences`, none is left.
    """
    is_deciding = _is_delivered() | F.isnull("_order_day")
    newest = raw.where(is_deciding).groupBy(DAY).agg(F.max("_arrival_date").alias("_arrival_date"))
    return raw.join(F.broadcast(newest), [DAY, "_arrival_date"]).select(*raw.columns)


def absences(lying: DataFrame, source: Contract) -> DataFrame:
    """Return a marker for each arrival without a row on a day for which an older arrival has one.

    Args:
        lying: `DAY`, `_arrival`, `_arrival_date` and `_kind` of all raw rows that count, including arriving ones.
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
    """Return the outcome of all raw rows of each day."""
    names = ("raw", "quarantined", "voided", "expected", "keys", "keys_quarantined", "rivals", "most_versions")
    nothing = dict.fromkeys(names, 0)
    return {
        day: dict(balance := row_balances.get(day, nothing))
        | {"raw": (whole := delivered.get(day, balance["raw"])) + withdrawn.get(day, 0)}
        | {"withdrawn": withdrawn.get(day, 0), "replaced": whole - balance["raw"]}
        for day in row_balances.keys() | withdrawn.keys() | delivered.keys()
    }


def rows_taken_back(raw: DataFrame, arrivals: Collection[str]) -> dict[tuple[date, str], int]:
    """Return the days on which some arrivals have valid rows, and how many were delivered, without tombstones."""
    per_arrival = raw.where(F.col("_arrival").isin(*arrivals)).groupBy(DAY, "_arrival")
    return {
        (row[DAY], row["_arrival"]): row["rows"]
        for row in per_arrival.agg(F.count_if(_is_delivered()).alias("rows")).collect()
    }


def withdrawals(raw: DataFrame, arrivals: Collection[str], schema: StructType) -> DataFrame:
    """Return the withdrawal markers of some arrivals on the days with their valid rows."""
    pairs = raw.where(F.col("_arrival").isin(*arrivals)).select(DAY, "_arrival").distinct()
    return as_raw(pairs.withColumn("_kind", F.lit(WITHDRAWAL)), schema)


def as_raw(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with the columns of raw, null for missing ones."""
    lacking = [
        F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields if field.name not in rows.columns
    ]
    return rows.select("*", *lacking).select(*schema.fieldNames())


def _markers(raw: DataFrame) -> DataFrame:
    return raw.where(F.col("_kind") == WITHDRAWAL).select(DAY, "_arrival")


def _is_delivered() -> Column:
    return ~F.col("_kind").isin(TOMBSTONE, WITHDRAWAL)


VERSION = ("_arrival", "_place", "_row_hash")
"""Identify a delivery of a version of a key; rows from `versions.identified` have these columns."""

_LOSER = "_loser"


def tombstones(
    arriving: DataFrame,
    present: DataFrame | None,
    source: Contract,
    keep: Keep,
    *,
    few: bool = False,
) -> DataFrame | None:
    """Return a tombstone for every version of a key that may be newer than the oldest one of another day, on that day.

    A tombstone is the version itself with all fields: whether it keeps the rules, and so removes the record from the
    day, is decided when the day is computed, by the rules of then. It has the version's own arrival, so that it goes
    when that is withdrawn. Days are compared in pairs, only within `moves_within_days`, and by the declared columns
    alone, so that the outcome does not depend on the order of arrival: versions that are equal in these get tombstones
    on each other's days, and computing the days uses the whole order.

    Args:
        arriving: raw rows being ingested.
        present: raw rows already there that count, without tombstones, of every day within reach; None without any.
            They have been compared with each other.
        keep: caches frames that are read several times, until the tombstones are staged.
        few: whether there are at most `MOST_BROADCAST` arriving rows, so that the present rows need no shuffle.

    Returns:
        Raw rows of kind tombstone, on the days that they mark; None if no key is on two days.
    """
    key = source.key
    has_day = F.isnotnull(source.event_time or DAY)  # a delete without event time moves no record
    arriving, present = arriving.where(has_day), present and present.where(has_day)
    versions = arriving.withColumn("_new", F.lit(True))
    if present is not None:
        if few:
            present = present.join(F.broadcast(arriving.select(*key)), list(key), "left_semi")
        versions = versions.unionByName(present.withColumn("_new", F.lit(False)))
    # Nearly every key lies on one day; telling the others takes three figures per key, and only they are looked at.
    on_days = versions.groupBy(*key).agg(
        F.min(DAY).alias("_first"), F.max(DAY).alias("_last"), F.bool_or("_new").alias("_any_new")
    )
    moving = keep(on_days.where("_any_new and _first < _last").select(*key))
    count = moving.count()
    if count == 0:
        return None
    few_move = count <= MOST_BROADCAST
    lying = versions.join(F.broadcast(moving) if few_move else moving, list(key), "left_semi")
    if not few:
        lying = keep(lying)
    told = keep(_told(lying.select(*dict.fromkeys((DAY, *key, *source.versioned_by, *VERSION, "_new"))), source))
    winners = [row[DAY] for row in told.select(DAY).distinct().collect()]
    if not winners:
        return None
    # For many rows the whole ones have been read. If few arrive, most near days have no tombstones.
    whole = versions.where(F.col(DAY).isin(winners)) if few else lying
    newer = whole.drop("_new").join(F.broadcast(told) if few_move else told, [DAY, *key, *VERSION])
    return (
        newer.dropDuplicates([DAY, *key, *VERSION, _LOSER])
        .drop(DAY)
        .withColumns({"_kind": F.lit(TOMBSTONE), "_rescued": F.lit(None).cast("string")})
        .withColumnRenamed(_LOSER, DAY)
    )


def _told(lying: DataFrame, source: Contract) -> DataFrame:
    """Return versions that need a tombstone on another day, `_loser`, and have none yet."""
    key, order = source.key, F.struct(F.lit(0), *source.versioned_by)
    oldest = lying.groupBy(*key, F.col(DAY).alias(_LOSER)).agg(
        F.min(order).alias("_oldest"),
        F.min(F.when(F.col("_new"), order)).alias("_oldest_new"),
        F.min(F.when(~F.col("_new"), order)).alias("_oldest_before"),
    )
    near = (F.abs(F.date_diff(DAY, _LOSER)) <= source.moves_within_days) & (F.col(DAY) != F.col(_LOSER))
    was_told = F.coalesce(order >= F.col("_oldest_before"), F.lit(False))
    tells = F.when(F.col("_new"), order >= F.col("_oldest")).otherwise((order >= F.col("_oldest_new")) & ~was_told)
    return lying.join(oldest, list(key)).where(near & tells).select(DAY, *key, *VERSION, _LOSER).distinct()


def within_reach_only(raw: DataFrame, within_days: int) -> DataFrame:
    """Return raw rows without tombstones of versions beyond the distance of one key's versions.

    They were made under a contract that looked farther.
    """
    return raw.where((F.col("_kind") != TOMBSTONE) | (F.abs(F.date_diff("_order_day", DAY)) <= within_days))
