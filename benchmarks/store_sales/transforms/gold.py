"""Gold: what people read, summed per day."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TOTAL = "decimal(18,2)"


def store_sales(transactions: DataFrame) -> DataFrame:
    """Sales per day and store."""
    gross = F.col("sales_value") + F.col("retail_disc") + F.col("coupon_match_disc")
    discounts = F.col("retail_disc") + F.col("coupon_match_disc") + F.col("coupon_disc")
    # Baskets first: a sum over their lines, then over the baskets, needs no expensive count of distinct values.
    per_basket = transactions.groupBy("event_date", "store_id", "basket_id").agg(
        F.count(F.lit(1)).alias("lines"),
        F.sum("quantity").alias("units"),
        F.sum(gross).alias("gross"),
        F.sum(discounts).alias("discounts"),
    )
    return per_basket.groupBy("event_date", "store_id").agg(
        F.sum("lines").alias("lines"),
        F.count(F.lit(1)).alias("baskets"),
        F.sum("units").alias("units"),
        F.sum("gross").cast(TOTAL).alias("gross"),
        F.sum("discounts").cast(TOTAL).alias("discounts"),
        F.sum(F.col("gross") - F.col("discounts")).cast(TOTAL).alias("net"),
    )
