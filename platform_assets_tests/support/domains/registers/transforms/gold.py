"""Gold of the registers: sums by store."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import History, Windowed

_FIGURES = ("lines", "amount")


def store_days(lines: DataFrame, goods: History) -> DataFrame:
    """Lines of a day by store and category; those without a store count nowhere."""
    sold = goods.as_of_join(lines.where(F.col("store").isNotNull()))
    category = F.coalesce("category", F.lit("?")).alias("category")
    return _summed(sold.select("event_date", "store", category, F.lit(1).alias("lines"), "amount"), "category")


def store_spans(lines: Windowed) -> DataFrame:
    """Lines of three days by store."""
    sold = lines.frame.where(F.col("store").isNotNull()).withColumn("lines", F.lit(1))
    daily = _summed(sold)
    return _summed(lines.per_day(daily))


def store_months(store_days: Windowed) -> DataFrame:
    """Lines since the first of the month by store and category."""
    return _summed(store_days.per_day(), "category")


def _summed(rows: DataFrame, *by: str) -> DataFrame:
    sums = [F.sum(name).cast("long").alias(name) for name in _FIGURES]
    return rows.groupBy("event_date", "store", *by).agg(*sums)
