"""Gold of the domains of tests."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import History, Windowed


def store_sales(orders: DataFrame) -> DataFrame:
    """Orders of a day by store."""
    revenue = F.sum(F.col("quantity") * F.col("price")).cast("decimal(18,2)")
    return orders.groupBy("event_date", "store").agg(
        F.count(F.lit(1)).alias("orders"), F.sum("quantity").cast("long").alias("units"), revenue.alias("revenue")
    )


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


def sensor_week(readings: Windowed) -> DataFrame:
    """The trailing week of each sensor."""
    daily = readings.frame.groupBy("event_date", "sensor").agg(
        F.count(F.lit(1)).alias("readings"), F.min("celsius").alias("coldest"), F.max("celsius").alias("warmest")
    )
    week = readings.per_day(daily).groupBy("event_date", "sensor")
    return week.agg(
        F.sum("readings").alias("readings"), F.min("coldest").alias("coldest"), F.max("warmest").alias("warmest")
    )


def persons(visits: Windowed) -> DataFrame:
    """How often each person came on two days."""
    daily = (
        visits.frame.where("person IS NOT NULL").groupBy("event_date", "person").agg(F.count("visit").alias("visits"))
    )
    return visits.per_day(daily).groupBy("event_date", "person").agg(F.sum("visits").alias("visits"))


def takings(visits: DataFrame) -> DataFrame:
    """What a day brought."""
    return visits.groupBy("event_date").agg(
        F.count("visit").alias("visits"), F.sum("paid").cast("decimal(18,2)").alias("paid")
    )
