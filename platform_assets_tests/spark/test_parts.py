"""Large days are dealt out by key, small ones stay whole, and Spark is as it was afterwards."""

from __future__ import annotations

from collections import defaultdict
from datetime import date

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Column, Contract, LandingFiles
from platform_assets.spark.raw.versions import greatest_versions, order_of
from platform_assets.spark.tables.staging import in_parts, tasks_for

SMALL, LARGE = date(2017, 1, 1), date(2017, 1, 2)
SETTINGS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize",
    "spark.sql.files.maxPartitionBytes",
)


RAW = Contract(
    "raw.versions",
    "As delivered.",
    "me",
    (Column("key", "long", "Key.", nullable=False), Column("at", "date", "Day.")),
    ("key",),
    source=LandingFiles("versions"),
    event_time="at",
)


def settings_of(spark: SparkSession) -> list[str | None]:
    return [spark.conf.get(name) for name in SETTINGS]


def versions(spark: SparkSession, rows: int = 4000) -> DataFrame:
    """Two versions of each key of two days, of one day ten times as many; half of the large day's are of one key."""
    return spark.range(rows).selectExpr(
        f"IF(id % 10 = 0, date'{SMALL}', date'{LARGE}') AS event_date",
        f"IF(id % 2 = 1, -1, id % {rows // 2}) AS key",
        "date'2017-01-03' AS _arrival_date",
        "false AS _void",
        "'a.csv' AS _file_order",
        "id AS _place",
        "xxhash64(id) AS _row_hash",
        "id AS payload",
    )


def tasks_by_day(frame: DataFrame) -> dict[date, set[int]]:
    found: defaultdict[date, set[int]] = defaultdict(set)
    for row in frame.select(DAY, F.spark_partition_id().alias("task")).distinct().collect():
        found[row[DAY]].add(row["task"])
    return found


def test_a_large_day_has_as_many_tasks_as_parts_and_a_small_one_has_one(spark: SparkSession) -> None:
    dealt = in_parts(versions(spark), {LARGE: 5}, ["key"])
    assert {day: len(tasks) for day, tasks in tasks_by_day(dealt).items()} == {SMALL: 1, LARGE: 5}
    lying = dealt.select(DAY, "key", F.spark_partition_id().alias("task")).distinct().collect()
    assert len({(row[DAY], row["key"]) for row in lying}) == len(lying), "versions of a key meet"


@pytest.mark.parametrize("heavy", [False, True])
def test_the_greatest_versions_are_the_same_in_however_many_parts(spark: SparkSession, heavy: bool) -> None:
    raw = versions(spark)
    whole = {tuple(row) for row in greatest_versions(raw, RAW).collect()}
    parts = greatest_versions(raw, RAW, {LARGE: 5}, heavy=heavy)
    assert parts.columns == raw.columns
    assert {tuple(row) for row in parts.collect()} == whole
    assert len(whole) == raw.select(DAY, "key").distinct().count()
    assert set(order_of(RAW)) <= set(raw.columns)


def test_versions_of_a_heavy_key_do_not_meet_in_one_task(spark: SparkSession) -> None:
    """Each task sends on one version of a key, whatever it has read."""
    newest = greatest_versions(versions(spark), RAW, {LARGE: 5}, heavy=True)
    plan = newest._jdf.queryExecution().executedPlan().toString()
    assert plan.index("Final") < plan.index("Exchange") < plan.index("Partial")


def test_spark_is_as_it_was_after_work_on_a_large_day(spark: SparkSession) -> None:
    before = settings_of(spark)
    with tasks_for(lambda: spark, {LARGE: 7}, 1000) as given:
        assert settings_of(spark) == before, "nothing was asked for yet"
        assert settings_of(given()) == ["true", "7", "4000b", "1000b", "1048576b"]
        assert settings_of(given()) == ["true", "7", "4000b", "1000b", "1048576b"]
    assert settings_of(spark) == before
    with pytest.raises(AnalysisException), tasks_for(lambda: spark, {LARGE: 7}, 1000) as given:
        given().sql("SELECT nothing")
    assert settings_of(spark) == before


def test_nothing_is_changed_for_small_days(spark: SparkSession) -> None:
    before = settings_of(spark)
    with tasks_for(lambda: spark, {}, 1000) as given:
        assert settings_of(given()) == before
