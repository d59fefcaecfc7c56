"""Silver of the visits."""

from __future__ import annotations

from pyspark.sql import DataFrame


def visits(visits: DataFrame) -> DataFrame:
    """Visits as they are."""
    return visits
