"""Gold of the sensors."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import Windowed


def sensor_week(readings: Windowed) -> DataFrame:
    """The trailing week of each sensor."""
    daily = readings.frame.groupBy("event_date", "sensor").agg(
        F.count(F.lit(1)).alias("readings"), F.min("celsius").alias("coldest"), F.max("celsius").alias("warmest")
    )
    week = readings.per_day(daily).groupBy("event_date", "sensor")
    return week.agg(
        F.sum("readings").alias("readings"), F.min("coldest").alias("coldest"), F.max("warmest").alias("warmest")
    )
