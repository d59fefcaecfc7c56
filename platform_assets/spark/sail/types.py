"""Types in which Sail gives what Spark gives in others."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructType

from platform_assets.spark.sail.session import is_sail


def as_spark_counts(spark: SparkSession, frame: DataFrame, schema: StructType) -> DataFrame:
    """Long columns as the ints that a contract declares, in frames of Sail: it counts days in longs, Spark in ints.

    A value that is no int raises an error. Everything else has to be of its type already; by Spark itself nothing is
    ever cast silently.
    """
    if not is_sail(spark):
        return frame
    ints = {field.name for field in schema.fields if field.dataType == IntegerType()}
    longs = [field.name for field in frame.schema.fields if field.dataType == LongType() and field.name in ints]
    return frame.withColumns({name: F.col(name).cast("int") for name in longs}) if longs else frame
