"""Deletes without event time: every day with a record of their key is told of them by a tombstone.

Such a delete is a void on the day it arrived. Which days it reaches follows from it and the records alone, so that it
makes no difference which of them is taken first.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.records.row_kinds import RECORD, TOMBSTONE, VOID

_ON = "_on"


def is_undated(source: Contract) -> Column:
    """Tell whether a raw row is a delete without event time."""
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
