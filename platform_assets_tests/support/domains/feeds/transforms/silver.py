"""Silver of the feeds."""

from __future__ import annotations

from pyspark.sql import DataFrame


def orders(orders: DataFrame) -> DataFrame:
    """Orders as they are."""
    return orders
