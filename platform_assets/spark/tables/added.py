"""Columns added to a frame, all at once and however many there are."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """A frame with columns added or replaced; Spark Connect adds every number of columns but none."""
    return frame.withColumns(dict(columns)) if columns else frame
