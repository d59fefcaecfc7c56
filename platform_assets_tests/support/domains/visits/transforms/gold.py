"""Gold of the visits."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import Windowed


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
