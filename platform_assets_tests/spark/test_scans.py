"""Whose jobs they are, and in what order rows come."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from platform_assets.spark.tables.scans import as_planned, with_own_jobs


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


def sorts(frame: DataFrame) -> int:
    """How often a frame is sorted where it is written by day, on the way that was planned before apart."""
    plan = cast("Any", frame.sortWithinPartitions("event_date"))._jdf.queryExecution().executedPlan()
    return str(plan.treeString()).count("Sort [")


def test_rows_that_come_by_day_are_not_sorted_by_day_once_more(spark: SparkSession, tmp_path: Path) -> None:
    made = spark.range(100).selectExpr("id", "date_add(date'2017-01-01', cast(id % 5 as int)) AS event_date")
    made.write.parquet(str(tmp_path / "rows"))
    # As rules do it: the optimiser takes that out, and has other names for the columns then
    packed = (
        spark.read.parquet(str(tmp_path / "rows")).select(F.struct("id", "event_date").alias("row")).select("row.*")
    )
    ranked = packed.withColumn("rank", F.row_number().over(Window.partitionBy("event_date", "id").orderBy("id")))
    in_order = ranked.where("rank = 1").drop("rank")
    planned = as_planned(in_order)
    assert sorts(planned) == 0
    assert sorted(planned.collect()) == sorted(in_order.collect())
    by_day = [[row["event_date"] for row in part] for part in planned.rdd.glom().collect()]
    assert all(days == sorted(days) for days in by_day)
    assert sorts(as_planned(packed)) == 1, "they come as they are"
    assert sorts(as_planned(packed.repartition(2, "event_date").sortWithinPartitions("id", "event_date"))) == 1
