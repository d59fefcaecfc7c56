"""Gold of the weekly figures."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import Windowed


def four_weeks(figures: Windowed) -> DataFrame:
    """Sales of each store in four weeks."""
    sales = F.sum("sales").cast("decimal(18,2)").alias("sales")
    return figures.per_day().groupBy("event_date", "store").agg(sales)
