"""Silver: one clean row per key. The engine has already applied the rules and picked the newest version."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MONEY = "decimal(12,2)"


def transactions(transactions: DataFrame) -> DataFrame:
    """Till lines with the amount received."""
    net = (F.col("sales_value") - F.col("coupon_disc")).cast(MONEY)
    return transactions.drop("voided").withColumn("net_amount", net)


def products(products: DataFrame) -> DataFrame:
    """Product attributes with the day from which they hold."""
    return products.drop("updated_at")
