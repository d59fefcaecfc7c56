"""Keys on more than one day: tombstones, by which a day knows the newer versions that lie on others."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.records.row_kinds import TOMBSTONE
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.tables.reading import Keep

VERSION = ("_arrival", "_place", "_row_hash")
"""What tells a delivery of a version of a key from the others; rows that are `versions.identified` have it."""

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

    A tombstone is the version itself, fields and all: whether it keeps the rules, and so takes the record away from the
    day, is for whoever computes the day to say, by the rules of then. It comes from the version's own arrival, so that
    it goes when that is withdrawn. Days are compared two by two and only within `moves_within_days` of each other, and
    by the declared columns alone, so that the outcome does not depend on the order in which versions arrive: of those
    that are equal in them each is told to the other's day, and whoever computes the days knows all of the order.

    Args:
        arriving: raw rows being ingested.
        present: raw rows already there that count, without tombstones, of every day within reach; None where there are
            none. Among themselves they have been compared.
        keep: holds what is read several times, as long as the tombstones are not staged.
        few: there are at most `MOST_BROADCAST` arriving rows, so that those present need not be shuffled to be found.

    Returns:
        Raw rows of kind tombstone, on the days that they tell; None where no key lies on two days.
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
    # Of many rows the whole ones have been read; where few arrive, most days that lie near have nothing to tell.
    whole = versions.where(F.col(DAY).isin(winners)) if few else lying
    newer = whole.drop("_new").join(F.broadcast(told) if few_move else told, [DAY, *key, *VERSION])
    return (
        newer.dropDuplicates([DAY, *key, *VERSION, _LOSER])
        .drop(DAY)
        .withColumns({"_kind": F.lit(TOMBSTONE), "_rescued": F.lit(None).cast("string")})
        .withColumnRenamed(_LOSER, DAY)
    )


def _told(lying: DataFrame, source: Contract) -> DataFrame:
    """Return which versions have to be told to which other days, `_loser`, and have not been before."""
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
    """Return raw rows without the tombstones of versions that lie further away than versions of one key can.

    They were made under a contract that looked further.
    """
    return raw.where((F.col("_kind") != TOMBSTONE) | (F.abs(F.date_diff("_order_day", DAY)) <= within_days))
