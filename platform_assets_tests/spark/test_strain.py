"""What a session is known to have gone through, by which the pace of a backfill is chosen."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from platform_assets.spark.tables.strain import Strain, WatchedSpark

BUFFER = "spark.sql.windowExec.buffer"


def test_what_did_not_fit_into_memory_is_told_once_and_what_fits_is_not(spark: SparkSession) -> None:
    watched = WatchedSpark(lambda: spark)
    assert not watched.was_needed
    assert watched.strain() == Strain(), "nobody has needed the session yet"
    spark.range(10).selectExpr("sum(id)").collect()
    assert watched() is spark
    stages = cast("Any", watched)._stages
    assert stages == cast("Any", spark.sparkContext)._jsc.sc().dagScheduler().nextStageId(), (
        "what others did is not asked"
    )
    spark.range(1000).selectExpr("sum(id)").collect()
    assert watched.strain().spilled_bytes == 0
    settings = {f"{BUFFER}.in.memory.threshold": "1", f"{BUFFER}.spill.threshold": "100"}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        rows = spark.range(5000).withColumn("last", F.last("id").over(Window.partitionBy(F.col("id") % 2)))
        rows.selectExpr("sum(last)").collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
    found = watched.strain()
    assert found.spilled_bytes > 0
    assert 0 <= found.full_share < 1
    assert watched.strain().spilled_bytes == 0, "it was told already"
