"""Reference data from before the calendar: what was valid when the calendar begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.records.row_kinds import BREACH, RECORD
from platform_assets.spark.raw.rules import with_verdict
from platform_assets.spark.raw.versions import order_of


def valid_at_start(raw: DataFrame, first: date, source: Contract, rules: Sequence[Rule]) -> DataFrame:
    """Move raw rows from before the calendar to its first day, without those that a newer one of their thing replaced.

    Rows that break a rule stay, since they go into quarantine.

    Args:
        raw: rows that count, `in_order`, of the first day, of days before it, and maybe of later ones.
        first: day of the calendar.
        source: contract of the raw table.
        rules: of the silver table.
    """
    thing = [name for name in source.key if name != source.event_time]
    counted_on = F.greatest(DAY, F.lit(first))
    newest = SortWindow.partitionBy(DAY, *source.key, "_good").orderBy(*map(F.desc, order_of(source)))
    delivered = raw.withColumn("_delivered_kind", F.col("_kind"))  # a verdict may change the kind
    judged = with_verdict(delivered, rules, source.void_condition)
    is_valid = F.col("_good") & (F.col("_kind") == RECORD) & (F.row_number().over(newest) == 1)
    valid = judged.withColumn("_valid", F.when(is_valid, F.col(DAY)))
    since = F.max("_valid").over(SortWindow.partitionBy(counted_on, *thing))
    breaks = ~F.col("_good") | (F.col("_kind") == BREACH)
    standing = valid.withColumn("_stands", breaks | F.coalesce(F.col(DAY) == since, F.lit(True)))
    kept = standing.where("_stands").withColumns({"_kind": F.col("_delivered_kind"), DAY: counted_on})
    return kept.select(*raw.columns)
