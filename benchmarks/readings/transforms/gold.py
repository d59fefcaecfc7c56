"""Gold: one table with as many rows as were read, and one with few."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import Windowed


def converted(readings: DataFrame) -> DataFrame:
    """Every reading, in Fahrenheit."""
    fahrenheit = (F.col("celsius") * F.lit("1.8").cast("decimal(3,1)") + F.lit(32)).cast("decimal(12,3)")
    return readings.select("sensor", "number", fahrenheit.alias("fahrenheit"), "place", "event_date")


def week(readings: Windowed) -> DataFrame:
    """Sums of seven days."""
    daily = readings.frame.groupBy("event_date", "sensor").agg(
        F.count(F.lit(1)).alias("readings"), F.sum("celsius").alias("degrees")
    )
    per_day = readings.per_day(daily).groupBy("event_date", "sensor")
    return per_day.agg(F.sum("readings").alias("readings"), F.sum("degrees").cast("decimal(38,2)").alias("degrees"))
