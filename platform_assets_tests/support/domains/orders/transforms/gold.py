"""Gold of the orders."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def store_sales(orders: DataFrame) -> DataFrame:
    """Orders of a day by store."""
    revenue = F.sum(F.col("quantity") * F.col("price")).cast("decimal(18,2)")
    return orders.groupBy("event_date", "store").agg(
        F.count(F.lit(1)).alias("orders"), F.sum("quantity").cast("long").alias("units"), revenue.alias("revenue")
    )
