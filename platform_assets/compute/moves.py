"""Keys on more than one day: tombstones for the days that lose."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.compute.dedup import ORDER
from platform_assets.compute.kinds import TOMBSTONE
from platform_assets.contracts import DAY

_VERSION = (*ORDER, "_arrival")
"""What a tombstone takes over from the version that beats the day: its place, and where it came from, so that the
tombstone goes when that arrival is withdrawn."""

MOST_BROADCAST = 500_000
"""Keys that every Spark task can hold at once; with more of them rows are shuffled instead."""


def tombstones(
    arriving: DataFrame, present: DataFrame | None, key: Sequence[str], within_days: int, *, few: bool = False
) -> DataFrame | None:
    """A tombstone for every day whose newest version of a key is older than another day's.

    Days are compared two by two and only within `within_days` of each other, so that the outcome does not depend on
    the order in which versions arrive. A tombstone takes its place in the order, and its arrival, from the version that
    beats the day.

    Args:
        arriving: raw rows being ingested.
        present: raw rows already there that count, without tombstones, of every day within reach; None where there are
            none.
        key: columns of the natural key.
        within_days: how far apart two versions of one key can lie.
        few: there are at most `MOST_BROADCAST` arriving rows, so that those present need not be shuffled to be found.

    Returns:
        Raw rows of kind tombstone with key, order, arrival and day, at most one per key and day; None where no day
        loses.
    """
    columns = [DAY, *key, *_VERSION]
    versions = arriving.select(*columns, F.lit(True).alias("_new"))
    if present is not None:
        if few:
            present = present.join(F.broadcast(arriving.select(*key)), list(key), "left_semi")
        versions = versions.unionByName(present.select(*columns, F.lit(False).alias("_new")))
    # Nearly every key lies on one day; telling the others takes three figures per key, and only they are looked at.
    on_days = versions.groupBy(*key).agg(
        F.min(DAY).alias("_first"), F.max(DAY).alias("_last"), F.bool_or("_new").alias("_any_new")
    )
    moving = on_days.where("_any_new and _first < _last").select(*key).localCheckpoint()
    count = moving.count()
    if count == 0:
        return None
    tops = (
        versions.join(F.broadcast(moving) if count <= MOST_BROADCAST else moving, list(key), "left_semi")
        .groupBy(DAY, *key)
        .agg(F.max(F.struct(*_VERSION)).alias("top"), F.bool_or("_new").alias("new"))
    )
    days = tops.groupBy(*key).agg(F.collect_list(F.struct(DAY, "top", "new")).alias("_days"))
    losers = days.withColumn("_loser", F.explode("_days")).withColumn("_top", _beaten_by(within_days))
    found = losers.where(F.isnotnull("_top")).select(
        *key, "_top.*", F.lit(TOMBSTONE).alias("_kind"), F.col(f"_loser.{DAY}").alias(DAY)
    )
    found = found.localCheckpoint()
    return None if found.isEmpty() else found


def _beaten_by(within_days: int) -> Column:
    """Of the versions on other days that beat `_loser`, the greatest; pairs that are both old were settled before."""
    loser = F.col("_loser")

    def beats(other: Column) -> Column:
        near = F.abs(F.date_diff(other[DAY], loser[DAY])) <= within_days
        return near & (other[DAY] != loser[DAY]) & (other["top"] > loser["top"]) & (other["new"] | loser["new"])

    return F.array_max(F.transform(F.filter("_days", beats), lambda other: other["top"]))
