"""The rows of two tables in one, each with the columns of both."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def outer_union(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the rows of both by name; a column that one side lacks is null there, of the type that the other has.

    With `allowMissingColumns` Sail gives such a column no type, and sums its decimals as doubles.
    """
    return _with_columns_of(right, left).unionByName(_with_columns_of(left, right))


def _with_columns_of(other: DataFrame, frame: DataFrame) -> DataFrame:
    has = set(frame.columns)
    lacks = (field for field in other.schema.fields if field.name not in has)
    return frame.withColumns({field.name: F.lit(None).cast(field.dataType) for field in lacks})
