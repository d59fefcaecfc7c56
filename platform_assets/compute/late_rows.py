"""Rows that arrived after their restatement window: they wait as they would have entered raw."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.compute.kinds import RECORD, VOID
from platform_assets.contracts import DAY


def is_late() -> Column:
    """Whether a row without a day, as `parse` returns it, is late; the others were refused."""
    return F.isnull(DAY) & F.col("_kind").isin(RECORD, VOID)


def late_rows(parsed: DataFrame) -> DataFrame:
    """The rows that `parse` found late, with their day."""
    return parsed.where(is_late()).withColumn(DAY, F.col("_order_day"))
