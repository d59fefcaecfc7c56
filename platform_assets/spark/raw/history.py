"""Reference data from before the calendar: what was valid when the calendar begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.records.row_kinds import RECORD, TOMBSTONE
from platform_assets.spark.raw.rules import with_verdict
from platform_assets.spark.raw.versions import ORDER

_REPLACED = "replaced"
"""The kind of a row that another one of its thing replaced before the calendar; it is counted, and loses to all."""


def valid_at_start(raw: DataFrame, first: date, source: Contract, rules: Sequence[Rule]) -> DataFrame:
    """Count raw rows from before the calendar on its first day, where the newest of each thing replaces the others.

    Args:
        raw: rows that count, of the first day, of days before it, and maybe of later ones.
        rules: of the silver table.
    """
    thing = [name for name in source.key if name != source.event_time]
    counted_on = F.greatest(DAY, F.lit(first))
    newest = SortWindow.partitionBy(DAY, *source.key, "_good").orderBy(*map(F.desc, ORDER))
    is_valid = F.col("_good") & (F.col("_kind") == RECORD) & (F.row_number().over(newest) == 1)
    judged = with_verdict(raw, rules, source.voided).withColumn("_valid", F.when(is_valid, F.col(DAY)))
    since = F.max("_valid").over(SortWindow.partitionBy(counted_on, *thing))
    is_replaced = F.coalesce(F.col("_good") & (F.col(DAY) != since), F.lit(False))
    marked = judged.withColumn("_replaced", is_replaced)
    kind = F.when(F.col("_replaced") & (F.col("_kind") != TOMBSTONE), _REPLACED).otherwise(F.col("_kind"))
    version = F.when(~F.col("_replaced"), F.col(ORDER[0]))
    return marked.withColumns({"_kind": kind, ORDER[0]: version, DAY: counted_on}).select(*raw.columns)
