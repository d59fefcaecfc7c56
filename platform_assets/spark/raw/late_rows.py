"""Rows that arrived too long after their day, or too far ahead of it: they wait as they would have entered raw."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY
from platform_assets.records.row_kinds import RECORD, VOID


def is_late() -> Column:
    """Whether a row without a day, as `parse` returns it, came too late or too far ahead; the others were refused."""
    return F.isnull(DAY) & F.col("_kind").isin(RECORD, VOID)


def late_rows(parsed: DataFrame) -> DataFrame:
    """The rows that `parse` found too late or too far ahead, with their day."""
    return parsed.where(is_late()).withColumn(DAY, F.col("_order_day"))
