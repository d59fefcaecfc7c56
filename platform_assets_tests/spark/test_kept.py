"""What is kept on a cluster, where Spark plans while it works, is kept in as few tasks as it needs."""

from __future__ import annotations

from pyspark.sql import SparkSession

PLANS, TASKS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"


def test_few_rows_are_kept_in_few_tasks(spark: SparkSession) -> None:
    before = {name: str(spark.conf.get(name)) for name in (PLANS, TASKS)}
    spark.conf.set(PLANS, "true")
    spark.conf.set(TASKS, "50")
    few = spark.range(7).groupBy("id").count().persist()
    try:
        assert few.count() == 7
        assert few.rdd.getNumPartitions() < 10
    finally:
        few.unpersist()
        for name, value in before.items():
            spark.conf.set(name, value)
