"""Silver of the domains of tests."""

from __future__ import annotations

from pyspark.sql import DataFrame


def orders(orders: DataFrame) -> DataFrame:
    """One row per order."""
    return orders.drop("voided")


def items(items: DataFrame) -> DataFrame:
    """One row per item and day from which it is sold."""
    return items


def lines(lines: DataFrame) -> DataFrame:
    """One row per line."""
    return lines.drop("voided")


def goods(goods: DataFrame) -> DataFrame:
    """One row per good and day from which it is of a category."""
    return goods.drop("updated_at")


def readings(readings: DataFrame) -> DataFrame:
    """Readings as they are."""
    return readings


def stock(stock: DataFrame) -> DataFrame:
    """Items and amounts."""
    return stock.select("item", "amount", "event_date")


def visits(visits: DataFrame) -> DataFrame:
    """Visits as they are."""
    return visits
