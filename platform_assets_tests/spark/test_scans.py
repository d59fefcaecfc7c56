"""Whose jobs they are."""

from __future__ import annotations

from threading import Thread

from pyspark.sql import DataFrame, SparkSession

from platform_assets.spark.tables.scans import with_own_jobs


def test_jobs_count_for_the_thread_that_started_them(spark: SparkSession) -> None:
    def lets_others_work() -> DataFrame:
        other = Thread(target=lambda: spark.range(5).count())
        other.start()
        other.join()
        return spark.range(1)

    def works() -> DataFrame:
        return spark.range(spark.range(5).count())

    assert with_own_jobs(spark, lets_others_work)[1] == 0
    frame, jobs = with_own_jobs(spark, works)
    assert jobs >= 1
    assert frame.count() == 5
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
