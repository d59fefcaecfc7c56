"""Gold: what people read, summed per day. The month to date is a query, in `gold/sales_month_to_date.sql`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import History, Windowed

TOTAL = "decimal(18,2)"
UNKNOWN = "UNKNOWN"
FIGURES = {
    "lines": "long",
    "baskets": "long",
    "units": "long",
    "gross": TOTAL,
    "discounts": TOTAL,
    "net": TOTAL,
}


def daily_sales(transactions: DataFrame, products: History) -> DataFrame:
    """Sales per day, store and department of the product as of that day."""
    gross = F.col("sales_value") + F.col("retail_disc") + F.col("coupon_match_disc")
    discounts = F.col("retail_disc") + F.col("coupon_match_disc") + F.col("coupon_disc")
    lines = products.as_of_join(transactions).select(
        "event_date",
        "store_id",
        F.coalesce("department", F.lit(UNKNOWN)).alias("department"),
        "basket_id",
        "quantity",
        gross.alias("gross"),
        discounts.alias("discounts"),
        (gross - discounts).alias("net"),
    )
    # Baskets first: a sum over their lines, then over the baskets, needs no expensive count of distinct values.
    per_basket = lines.groupBy("event_date", "store_id", "department", "basket_id").agg(
        F.count(F.lit(1)).alias("lines"),
        F.sum("quantity").alias("units"),
        *(F.sum(name).alias(name) for name in ("gross", "discounts", "net")),
    )
    sums = [F.sum(name).cast(type_).alias(name) for name, type_ in FIGURES.items()]
    return per_basket.withColumn("baskets", F.lit(1)).groupBy("event_date", "store_id", "department").agg(*sums)


def household_28d(transactions: Windowed) -> DataFrame:
    """Spend, trips and recency of each household over the trailing 28 days."""
    trips = transactions.frame.groupBy("event_date", "household_id", "basket_id").agg(
        F.sum("net_amount").alias("spend")
    )
    daily = trips.groupBy("event_date", "household_id").agg(
        F.sum("spend").alias("spend"), F.count(F.lit(1)).alias("trips")
    )
    return (
        transactions.per_day(daily)
        .groupBy("event_date", "household_id")
        .agg(
            F.sum("spend").cast(TOTAL).alias("spend"),
            F.sum("trips").alias("trips"),
            F.min(F.date_diff("event_date", "source_date")).alias("recency_days"),
        )
    )
