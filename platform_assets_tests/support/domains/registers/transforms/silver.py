"""Silver of the registers."""

from __future__ import annotations

from pyspark.sql import DataFrame


def lines(lines: DataFrame) -> DataFrame:
    """One row per line."""
    return lines.drop("voided")


def goods(goods: DataFrame) -> DataFrame:
    """One row per good and day from which it is of a category."""
    return goods.drop("updated_at")
