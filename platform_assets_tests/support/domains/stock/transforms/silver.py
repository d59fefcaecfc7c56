"""Silver of the stock."""

from __future__ import annotations

from pyspark.sql import DataFrame


def stock(stock: DataFrame) -> DataFrame:
    """Items and amounts."""
    return stock.select("item", "amount", "event_date")
