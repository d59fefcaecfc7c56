"""Which versions compute: results of an upgrade are a person's to look at, so days remember by what they were made."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_assets.spark.sail.session import is_sail, sail_version
from platform_assets.spark.session.jars import DELTA


def software_of(spark: SparkSession) -> dict[str, str]:
    """The version of Spark that a session computes with, and of Delta, which a Spark Connect server keeps to itself.

    Of Sail its own, and that of Spark which it says it is like.
    """
    if is_sail(spark):
        return {"sail": sail_version(), "spark": spark.version}
    own_jars = hasattr(spark, "_jsparkSession")
    return {"spark": spark.version} | ({"delta": DELTA[0].revision} if own_jars else {})
