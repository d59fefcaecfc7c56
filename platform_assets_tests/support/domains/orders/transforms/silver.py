"""Silver of the orders."""

from __future__ import annotations

from pyspark.sql import DataFrame


def orders(orders: DataFrame) -> DataFrame:
    """One row per order."""
    return orders.drop("voided")


def items(items: DataFrame) -> DataFrame:
    """One row per item and day from which it is sold."""
    return items
