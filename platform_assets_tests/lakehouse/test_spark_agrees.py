"""Spark reads what was published without it, at every version, and what Spark staged is published as it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import live_files, table_snapshot
from platform_assets.lakehouse.delta.new_commit import CHECKPOINT_INTERVAL
from platform_assets.lakehouse.errors import ForeignCommitError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import dataset, read_arrow
from platform_assets.lakehouse.releases import current_release
from platform_assets.lakehouse.revert import revert_foreign
from platform_assets.records.manifest import new_publication
from platform_assets.spark.tables.staging import stage
from platform_assets_tests.support.installation import rows_as_frame
from platform_assets_tests.support.shelf import (
    SALES,
    Days,
    change,
    content,
    contents,
    day,
    live,
    manifest,
    rows_of,
    spark_rows,
    staged_manifest,
)


@pytest.fixture
def lake(disk_lake: Lake) -> Lake:
    """What is looked at here lies on a disk."""
    return disk_lake


def stage_with_spark(spark: SparkSession, lake: Lake, days: Days) -> str:
    """Stage days as the engine does."""
    publication = new_publication()
    rows = [(r["key"], r["cents"], r["price"], r["event_date"]) for r in rows_of(days).to_pylist()]
    frame = rows_as_frame(spark, rows, "key string, cents long, price decimal(10,2), event_date date")
    stage(frame, lake.stage_path(SALES, publication))
    return publication


def in_spark(spark: SparkSession, lake: Lake, version: int | None = None) -> DataFrame:
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(str(lake.table_path(SALES)))


def in_arrow(lake: Lake, release: int) -> list[tuple[object, ...]]:
    rows = read_arrow(lake, SALES, columns=["event_date", "key", "cents", "price"], release=release).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> Lake:
    """Days published, replaced, emptied and rolled back, with odd text; staged by Spark and without it."""
    lake = Lake.at(tmp_path / "lake")  # Polars' own Delta reader does not find files below a folder with a space
    first = stage_with_spark(spark, lake, {day(n): [(f"ä%20 {n}/'\"\n", n), ("b", 10 * n)] for n in range(5)})
    publish(lake, manifest(first, change(lake, SALES, first)))
    original = live(lake, SALES)
    second = staged_manifest(lake, {SALES: {day(0): [("new", 7)]}}, days=[day(0), day(1)])
    publish(lake, second)
    back = {day(1): content(original[day(1)], ())}
    publish(lake, manifest(new_publication(), second.tables[0].model_copy(update={"days": back})))
    return lake


def test_spark_and_arrow_agree_on_every_release(spark: SparkSession, history: Lake) -> None:
    """Four reads by Spark, which unfolds a Delta log for each."""
    counts = []
    for number in range(3):
        rows = spark_rows(in_spark(spark, history, number))
        assert rows == in_arrow(history, number)
        counts.append(len(rows))
    assert counts == [10, 7, 9]
    assert spark_rows(in_spark(spark, history)) == in_arrow(history, 2)


def test_bounds_that_would_hide_rows_are_put_outwards(spark: SparkSession, lake: Lake) -> None:
    exact, rounded = Decimal("1234567890123.45"), Decimal("123456789012345678901234.67")
    moment = datetime(2017, 1, 1, 0, 0, 0, 123457, UTC)
    for number, price in enumerate((exact, rounded)):
        publication = new_publication()
        rows = [("k" * 50, price, moment, day(number))]
        stage(
            rows_as_frame(spark, rows, "key string, price decimal(38,2), at timestamp, event_date date"),
            lake.stage_path(SALES, publication),
        )
        publish(lake, manifest(publication, change(lake, SALES, publication)))
        assert in_spark(spark, lake).where(F.col("price") == price).count() == 1
        assert in_spark(spark, lake).where(F.col("key") == "k" * 50).count() == number + 1
    bounds = [
        json.loads(file.stats)["maxValues"] for files in live_files(lake.table_path(SALES)).values() for file in files
    ]
    assert Decimal(str(bounds[0]["price"])) == exact
    assert 0 < Decimal(bounds[1]["price"]) - rounded < rounded / 10**13
    assert [bound["at"] for bound in bounds] == ["2017-01-01T00:00:00.123999Z"] * 2
    price, at, key = (in_spark(spark, lake).agg(F.max(name)).collect()[0][0] for name in ("price", "at", "key"))
    assert (price, at.timestamp(), key) == (rounded, moment.timestamp(), "k" * 50), "Spark does not answer from bounds"
    assert {len(bound["key"]) for bound in bounds} == {32}


@pytest.mark.proof
def test_spark_finds_what_is_cut_on_its_way_into_the_log(spark: SparkSession, lake: Lake) -> None:
    publication = new_publication()
    rows = spark.sql(
        """
        SELECT * FROM VALUES
            (timestamp'2017-01-01 00:00:00.123457Z', 45035996273704.97BD, double('NaN'), date'2017-01-01'),
            (timestamp'9999-12-31 23:59:59.999999Z', 9999999999999.99BD, double('-0.0'), date'2017-01-02'),
            (timestamp'+18029-12-31 00:00:00Z', -0.01BD, double('Infinity'), date'2017-01-03')
        AS t(at, price, real, event_date)
        """
    ).withColumn("price", F.col("price").cast("decimal(18,2)"))
    every = [tuple(row) for row in rows.select(F.unix_micros("at"), "price", "real", "event_date").collect()]
    stage(rows, lake.stage_path(SALES, publication))
    publish(lake, manifest(publication, change(lake, SALES, publication)))
    found = in_spark(spark, lake)
    for micros, price, _, _ in every:
        assert found.where(F.unix_micros("at") == micros).count() == 1
        for bound in (F.col("at") == F.timestamp_micros(F.lit(micros)), F.col("price") == price):
            assert found.where(bound).count() == 1, bound
    assert found.where("real > 1e300").count() == 2, "not a number is greater than any"
    assert found.where("real = 0").count() == 1
    greatest = found.agg(F.unix_micros(F.max("at")), F.max("price"), F.isnan(F.max("real"))).first()
    assert tuple(greatest or ()) == (every[2][0], every[0][1], True)
    assert dataset(lake, SALES).count_rows() == 3


@pytest.mark.parametrize(
    ("predicate", "files"), [("event_date = '2017-01-03'", 1), ("cents > 35", 1), ("event_date <= '2017-01-02'", 2)]
)
def test_spark_reads_only_the_files_a_predicate_can_match(
    spark: SparkSession, history: Lake, predicate: str, files: int
) -> None:
    frame = in_spark(spark, history).where(predicate)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    scans = [leaf for leaf in _leaves(plan) if leaf.metrics().contains("numFiles")]
    assert sum(scan.metrics().apply("numFiles").value() for scan in scans) == files


def _leaves(plan: Any) -> list[Any]:
    if plan.nodeName().startswith("AdaptiveSparkPlan"):
        return _leaves(plan.executedPlan())
    leaves = plan.collectLeaves()
    return [leaves.apply(n) for n in range(leaves.size())]


@pytest.mark.proof
def test_a_commit_of_spark_is_named_and_can_be_undone(spark: SparkSession, history: Lake) -> None:
    """Spark deletes, optimizes and reads, each from the Delta log."""
    before = contents(history, SALES)
    path = str(history.table_path(SALES))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE key = 'b'")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    with pytest.raises(ForeignCommitError, match=r"Version 3 of silver\.sales .* DELETE of Apache-Spark/4"):
        publish(history, staged_manifest(history, {SALES: {day(3): [("x", 1)]}}))
    assert contents(history, SALES) == before
    revert_foreign(history, SALES)
    assert contents(history, SALES) == before
    assert spark_rows(in_spark(spark, history)) == in_arrow(history, current_release(history).number)


@pytest.mark.proof
def test_spark_and_arrow_agree_beyond_checkpoints_of_either(spark: SparkSession, lake: Lake) -> None:
    """Delta writes its checkpoint only after ten commits."""
    for n in range(CHECKPOINT_INTERVAL + 2):
        publish(lake, staged_manifest(lake, {SALES: {day(n % 3): [("n", n)]}}))
    for version in (0, CHECKPOINT_INTERVAL - 1, CHECKPOINT_INTERVAL, CHECKPOINT_INTERVAL + 1):
        assert spark_rows(in_spark(spark, lake, version)) == in_arrow(lake, version)
    table = lake.table_path(SALES)
    before = live_files(table)
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table)).checkpoint()
    assert commits.checkpoint_hint(table) == CHECKPOINT_INTERVAL + 1
    assert live_files(table) == before
    assert table_snapshot(table).metadata == table_snapshot(table, 0).metadata
