"""Keys on more than one day: tombstones for the days that lose."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.compute.dedup import ORDER, TOMBSTONE
from platform_assets.contracts import DAY


def tombstones(arriving: DataFrame, present: DataFrame, key: Sequence[str], within_days: int) -> DataFrame | None:
    """A tombstone for every day whose newest version of a key is older than another day's.

    Days are compared two by two and only within `within_days` of each other, so that the outcome does not depend on
    the order in which versions arrive. A tombstone takes its place in the order from the version that beats the day.

    Args:
        arriving: raw rows being ingested.
        present: raw rows already there, without tombstones, of every day within reach.
        key: columns of the natural key.
        within_days: how far apart two versions of one key can lie.

    Returns:
        Raw rows of kind tombstone with key, order and day, at most one per key and day; None where no key lies on
        two days.
    """
    columns = [DAY, *key, *ORDER]
    arriving = arriving.select(*columns)
    keys = arriving.select(*key).distinct()
    earlier = present.select(*columns).join(keys, list(key), "left_semi")
    both = arriving.select(*columns, F.lit(True).alias("_new")).unionByName(
        earlier.select(*columns, F.lit(False).alias("_new"))
    )
    moving = both.groupBy(*key).agg(F.min(DAY).alias("_a"), F.max(DAY).alias("_b")).where("_a < _b")
    moving = moving.select(*key).localCheckpoint()
    if moving.isEmpty():
        return None
    tops = (
        both.join(F.broadcast(moving), list(key), "left_semi")
        .groupBy(DAY, *key)
        .agg(F.max(F.struct(*ORDER)).alias("_top"), F.bool_or("_new").alias("_new"))
    )
    loser, winner = tops.alias("loser"), tops.alias("winner")
    beaten = (
        (F.col(f"loser.{DAY}") != F.col(f"winner.{DAY}"))
        & (F.abs(F.date_diff(f"loser.{DAY}", f"winner.{DAY}")) <= within_days)
        & (F.col("loser._top") < F.col("winner._top"))
        & (F.col("loser._new") | F.col("winner._new"))
    )
    same_key = [F.col(f"loser.{name}") == F.col(f"winner.{name}") for name in key]
    beats = loser.join(winner, [*same_key, beaten]).groupBy(
        F.col(f"loser.{DAY}").alias(DAY),
        *(F.col(f"loser.{name}").alias(name) for name in key),
    )
    found = beats.agg(F.max("winner._top").alias("_top"))
    return found.select(*key, "_top.*", F.lit(TOMBSTONE).alias("_kind"), DAY)
