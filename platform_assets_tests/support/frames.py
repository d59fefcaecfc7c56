"""Frames of a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def rows_as_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """Rows as a frame that lies in the JVM: one made of Python objects is computed by Python workers each time."""
    struct = cast("StructType", StructType.fromDDL(schema))
    arrow = to_arrow_schema(struct, timezone="UTC")
    columns = zip(*rows, strict=True) if rows else [[] for _ in arrow]
    values = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return cast("DataFrame", cast("Any", spark).createDataFrame(pa.Table.from_arrays(values, schema=arrow), struct))
