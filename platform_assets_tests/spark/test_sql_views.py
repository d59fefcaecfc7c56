"""Views in Spark SQL and scripts for other tools show what readers of a release see; plans show jobs and orders."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any, cast

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import platform_assets
from platform_assets.cli.app import main
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.spark.tables.scans import as_planned, with_own_jobs
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.shelf import SALES, STORES, day, staged_manifest
from platform_assets_tests.support.world import MakeWorld, World, product, sale

_OF_ONES_OWN = """
import platform_assets
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for read in (lambda: platform_assets.views(session), lambda: platform_assets.read("gold.daily_sales", engine="spark")):
    try:
        read()
    except platform_assets.errors.PlatformError as error:
        print(error)
session.stop()
try:
    platform_assets.views(session)
except platform_assets.errors.PlatformError as error:
    print(error)
"""
FIRST, SECOND = "2017-01-01", "2017-01-02"
SILVER, GOLD = "silver.transactions", "gold.daily_sales"


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Two days of sales, computed up to gold, in a folder with a space and signs."""
    world = make_world(days=2, domains=DAILY, lake="läke #1 + a=b 'q` {y}")
    world.deliver_rows("products", FIRST, "p.jsonl", [product(1, FIRST, "MEAT")])
    for place, date in enumerate((FIRST, SECOND)):
        world.deliver_rows("transactions", date, "t.jsonl", [sale(10 * place + n, 1, date) for n in range(3)])
    world.refresh()
    return world


def correct(world: World) -> None:
    later = sale(0, 1, FIRST, sales_value="99.00", updated_at=f"{SECOND}T12:00:00Z")
    world.deliver_rows("transactions", SECOND, "c.jsonl", [later])
    world.refresh()


def script(world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    for name in ("state", "lake", "jars"):
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(world.settings, name)))
    monkeypatch.setenv("PLATFORM_DOMAINS", DAILY)
    monkeypatch.setattr(sys, "argv", ["platform-assets", "views", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=str)


@pytest.mark.proof
def test_views_and_scripts_show_one_release_of_every_table_and_stay_there(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = platform_assets.current_release(world.settings)
    arrow = {table: platform_assets.read(table, release=now, settings=world.settings) for table in now.versions}
    spark = platform_assets.views(world.spark, settings=world.settings)
    frame = platform_assets.read(SILVER, engine="spark", settings=world.settings)
    connection = duckdb.connect()
    connection.execute(script(world, capsys, monkeypatch, "--engine", "duckdb"))
    correct(world)

    joined = "SELECT count(*), max(sales_value) FROM gold_daily_sales JOIN silver_transactions USING (event_date)"
    assert plain(spark.sql(joined).collect()) == [(6, Decimal("2.50"))]
    assert plain(frame.collect()) == plain(spark.table("silver_transactions").collect())
    first = platform_assets.read(GOLD, engine="spark", release=now, days=FIRST, settings=world.settings)
    assert first.count() == spark.sql(f"SELECT * FROM gold_daily_sales WHERE event_date = '{FIRST}'").count() == 1
    for table, found in arrow.items():
        read = duckdb.connect().from_arrow(found)
        view = connection.sql(f"SELECT * FROM {table}")
        assert (view.columns, view.types) == (read.columns, read.types), table
        assert plain(view.fetchall()) == plain(read.fetchall()), table
        assert in_spark(spark, table) == (found.column_names, found.num_rows)

    platform_assets.views(spark, settings=world.settings)
    assert plain(spark.sql("SELECT max(sales_value) FROM silver_transactions").collect()) == [(99,)]
    for statement in script(world, capsys, monkeypatch, "--engine", "spark", "--release", str(now.number)).split(";\n"):
        if statement.strip():
            spark.sql(statement)
    assert plain(spark.sql(joined).collect()) == [(6, Decimal("2.50"))]


def in_spark(spark: SparkSession, table: str) -> tuple[list[str], int]:
    view = spark.table(table.replace(".", "_"))
    return view.columns, view.count()


def test_a_view_of_a_table_that_came_later_goes_with_an_older_release(make_world: MakeWorld) -> None:
    world = make_world()
    lake = Lake.at(world.settings.lake)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    publish(lake, staged_manifest(lake, {STORES: {day(0): [("s", 1)]}}))
    spark = platform_assets.views(world.spark, settings=world.settings)
    assert spark.catalog.tableExists("gold_stores")
    platform_assets.views(spark, release=0, settings=world.settings)
    assert not spark.catalog.tableExists("gold_stores")
    assert spark.table("silver_sales").count() == 1


@pytest.mark.proof
def test_a_session_of_ones_own_that_was_started_without_delta_is_told_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("state", "lake"):
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(world.settings, name)))
    monkeypatch.setenv("PLATFORM_DOMAINS", DAILY)
    said = subprocess.run([sys.executable, "-c", _OF_ONES_OWN], capture_output=True, text=True, check=True).stdout
    assert said.count("started without what a lake is read with") == 2
    assert "take the one that platform_assets.views() starts" in said
    assert "This Spark session was stopped" in said


def test_a_session_of_ones_own_that_finds_no_table_by_its_folder_is_told_the_setting(make_world: MakeWorld) -> None:
    world = make_world()
    lake = Lake.at(world.settings.lake)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    session = world.spark.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    with pytest.raises(LakeError, match=r"spark\.sql\.runSQLOnFiles=true"):
        platform_assets.views(session, settings=world.settings)


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
