"""Which versions compute: results of an upgrade are a person's to look at, so days remember by what they were made."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_assets.spark.session.jars import DELTA


def software_of(spark: SparkSession) -> dict[str, str]:
    """The version of Spark that a session computes with, and of Delta, which a Spark Connect server keeps to itself."""
    own_jars = hasattr(spark, "_jsparkSession")
    return {"spark": spark.version} | ({"delta": DELTA[0].revision} if own_jars else {})
