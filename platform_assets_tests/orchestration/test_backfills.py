"""Backfills by Dagster's own daemon: scattered days, two at once, days that never landed, launched again, cancelled."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.engine import publishing
from platform_assets.engine import refresh as refreshing
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.publish import recover
from platform_assets.orchestration.instance.launcher import create_pools, lock_folder, run_process
from platform_assets.records.manifest import Kind, TableChange
from platform_assets.settings import load_settings, project_root
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.domains.transforms import gold
from platform_assets_tests.support.installation import JARS, SMALL_DATA
from platform_assets_tests.support.orchestration.daemon import (
    LAUNCH,
    Daemon,
    ask,
    complete,
    enter_world,
    instance_config,
    launch,
    look_after_backfills,
    published,
    reasons,
    request,
    run_one,
    running_daemon,
    status,
)
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, RAW, SENSORS, SILVER, TABLES, land
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.processes import started_from
from platform_assets_tests.support.world import World

UNDELIVERED = ["2017-01-11", "2017-01-12"]
PATIENCE_S = 120
Correct = Callable[..., None]
TERMINATE = "mutation ($run: String!) { terminateRuns(runIds: [$run]) { __typename } }"

pytestmark = pytest.mark.timeout(600)


def range_of(run: dg.DagsterRun) -> tuple[str, str]:
    """First and last day of a run."""
    if day := run.tags.get("dagster/partition"):
        return day, day
    return run.tags["dagster/asset_partition_range_start"], run.tags["dagster/asset_partition_range_end"]


def said(daemon: Daemon, run: dg.DagsterRun) -> str:
    """What the steps of a run wrote into its log."""
    return "\n".join(e.user_message for e in daemon.instance.all_logs(run.run_id) if not e.is_dagster_event)


def times_published(world: World, table: str) -> dict[int, int]:
    """How often each day of a table was published."""
    with world.open() as platform:
        ledger = platform.ledger
        return {day.day: len(ledger.history(table, day)) for day in ledger.current_days(table)}


def more_often(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Days that were published meanwhile, and how often."""
    return {day: times - before.get(day, 0) for day, times in after.items() if times != before.get(day, 0)}


@pytest.fixture(scope="module")
def readings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Twelve days, of which the first ten are delivered; computed by Spark."""
    settings = load_settings(
        state=tmp_path_factory.mktemp("backfills") / "state",
        jars=JARS,
        domains=SENSORS,
        calendar_first=DAYS[0],
        calendar_last=UNDELIVERED[-1],
        today=UNDELIVERED[-1],
    )
    world = World(settings, spark)
    for day in DAYS:
        land(world, day, day)
    with pytest.MonkeyPatch.context() as patch:
        enter_world(world, patch)
        yield world


@pytest.fixture(scope="module")
def daemon(readings: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Looks after the readings, with the pools that `up` makes; the ten days are loaded, by one run."""
    folder = tmp_path_factory.mktemp("daemon") / "dagster"
    with pytest.MonkeyPatch.context() as patch, running_daemon(folder, patch) as daemon:
        create_pools(daemon.instance)
        [run] = complete(daemon, launch(daemon, DAYS))
        assert run.status == dg.DagsterRunStatus.SUCCESS
        assert range_of(run) == (DAYS[0], DAYS[-1])
        assert published(readings, run) == {table: set(range(1, 11)) for table in TABLES}
        yield daemon


@pytest.fixture(scope="module")
def correct(readings: World) -> Correct:
    """Lands one more reading for each of some days, of a sensor of its own."""
    numbers = count()

    def land_more(*days: str) -> None:
        sensor = f"more{next(numbers)}"
        rows = [{"sensor": sensor, "measured_at": f"{day}T12:00:00Z", "celsius": "20.00"} for day in days]
        readings.deliver_rows("readings", DAYS[-1], f"{sensor}.jsonl", rows)

    return land_more


@pytest.mark.proof
def test_of_two_backfills_over_the_same_days_the_second_finds_them_up_to_date(
    readings: World, daemon: Daemon, correct: Correct
) -> None:
    correct(DAYS[4], DAYS[5])
    backfills = [launch(daemon, DAYS[4:6]) for _ in range(2)]
    assert len(daemon.queued()) == 2
    [first], [second] = (complete(daemon, backfill) for backfill in backfills)
    assert published(readings, first) == {table: {5, 6} for table in TABLES}
    assert published(readings, second) == {}
    for table in (SILVER, GOLD):
        assert f"{table}: 0 days published, 2 already up to date" in said(daemon, second)
    assert {status(daemon, backfill) for backfill in backfills} == {BulkActionStatus.COMPLETED_SUCCESS}


@pytest.mark.proof
@pytest.mark.parametrize(("table", "attempts"), [(SILVER, 3), (GOLD, 3), (SILVER, 1)])
def test_two_backfills_that_work_at_the_same_time_publish_every_day_once(
    table: str,
    attempts: int,
    readings: World,
    daemon: Daemon,
    correct: Correct,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two backfills by the daemon, one of which overtakes the other, be it once more than that one tries again."""
    monkeypatch.setattr(refreshing, "ATTEMPTS", attempts)
    days = DAYS[3:10]
    before = {name: times_published(readings, name) for name in TABLES}
    correct(*days)
    no_limits = {"pools": {"granularity": "run"}, "runs": {"max_concurrent_runs": 2}}
    with running_daemon(tmp_path / "wide", monkeypatch, concurrency=no_limits) as wide:
        backfills = [launch(wide, days) for _ in range(2)]
        overtaking: list[dg.DagsterRun] = []

        def overtaken(
            platform: Platform, publication: str, kind: Kind, tables: Sequence[TableChange], author: Author, **how: Any
        ) -> int:
            if tables[0].table == table and not overtaking:
                overtaking.extend(wide.queued())
                wide.launch()
            return publish_changes(platform, publication, kind, tables, author, **how)

        monkeypatch.setattr(publishing, "publish_changes", overtaken)
        runs = [run for backfill in backfills for run in complete(wide, backfill)]
    assert len(overtaking) == 1
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2
    assert {status(wide, backfill) for backfill in backfills} == {BulkActionStatus.COMPLETED_SUCCESS}
    for name in TABLES:
        assert more_often(before[name], times_published(readings, name)) == dict.fromkeys(range(4, 11), 1)
    assert table in published(readings, overtaking[0])
    keys = [(row["sensor"], row["measured_at"]) for row in readings.rows(SILVER)]
    assert len(keys) == len(set(keys))
    with readings.open() as platform:
        assert recover(platform.lake) == [], "something was published by half"


@pytest.mark.proof
def test_days_that_never_landed_fail_by_name_and_keep_no_other_day_back(
    readings: World, daemon: Daemon, correct: Correct
) -> None:
    """A backfill by the daemon, and a run that computes what it left."""
    correct(DAYS[8])
    backfill = launch(daemon, [*DAYS[8:], *UNDELIVERED])
    [run] = complete(daemon, backfill)
    assert status(daemon, backfill) == BulkActionStatus.COMPLETED_FAILED
    told = reasons(daemon, run).splitlines()
    assert told[0] == "raw.readings: 2 of 4 days not published."
    for line, day in zip(told[1:-1], UNDELIVERED, strict=True):
        assert line.startswith(f"{RAW} {day}: its source has not delivered it yet, and the day is not declared closed")
    assert published(readings, run) == {RAW: {9}}
    assert daemon.materialized(run) == {RAW: {9, 10}}, "a day that needed nothing is none of those that failed"
    assert published(readings, run_one(daemon))[SILVER] == {9}, "what the failed run left, the next tick computes"


def test_days_outside_the_calendar_are_refused(daemon: Daemon) -> None:
    backfills = daemon.instance.get_backfills()
    days = {"ranges": [{"start": DAYS[-1], "end": "2017-01-13"}]}
    given = {"partitionsByAssets": [{"assetKey": {"path": [RAW]}, "partitions": days}]}
    answer = ask(daemon, LAUNCH, given=given)["launchPartitionBackfill"]
    assert "range end 2017-01-13 is after the partitions definition end" in answer["message"]
    for outside in ("2016-12-31", "2017-01-13"):
        assert request(daemon, [outside], TABLES)["__typename"] == "PythonError"
    assert daemon.instance.get_backfills() == backfills


@pytest.mark.proof
def test_launched_again_after_a_failure_it_does_only_what_is_left(
    readings: World, daemon: Daemon, correct: Correct
) -> None:
    """Three backfills by the daemon. What fails, fails over rows: a mistake that shows without any is told before."""
    days = DAYS[7:10]
    correct(*days)
    sensor_week = gold.sensor_week

    def fails(readings: Windowed) -> DataFrame:
        none = F.col("readings") - F.col("readings")
        return sensor_week(readings).withColumn("readings", (F.col("readings") / none).cast("long"))

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(gold, "sensor_week", fails)
        [failed] = complete(daemon, launch(daemon, days))
    assert failed.status == dg.DagsterRunStatus.FAILURE
    assert published(readings, failed) == {RAW: {8, 9, 10}, SILVER: {8, 9, 10}}
    [again] = complete(daemon, launch(daemon, days))
    assert again.status == dg.DagsterRunStatus.SUCCESS
    assert published(readings, again) == {GOLD: {8, 9, 10}}
    [nothing] = complete(daemon, launch(daemon, days))
    assert published(readings, nothing) == {}


@pytest.fixture
def location(readings: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon with the project's own `dagster.yaml` and `workspace.yaml`: runs are processes of a code server."""
    monkeypatch.setenv("PYTHONPATH", str(project_root()))
    monkeypatch.setenv("PLATFORM_SPARK_CONF", json.dumps(SMALL_DATA))
    (tmp_path / "real").mkdir()
    home = instance_config(tmp_path / "real")
    target = WorkspaceFileTarget([str(project_root() / "workspace.yaml")])
    with (
        dg.DagsterInstance.from_config(str(home)) as instance,
        WorkspaceProcessContext(instance, target) as workspace,
    ):
        create_pools(instance)
        yield Daemon(workspace)


@pytest.mark.proof
def test_a_cancelled_run_leaves_no_half_of_a_day_and_no_lock(
    readings: World, daemon: Daemon, location: Daemon, correct: Correct
) -> None:
    with readings.open() as platform:
        folder, lake = platform.lake.table_path(GOLD), platform.lake
    stages, before = set(on_disk(folder).iterdir()), times_published(readings, GOLD)
    correct(*DAYS)
    backfill = launch(location, DAYS)
    [run] = location.launch()
    wait_for(lambda: bool(set(on_disk(folder).iterdir()) - stages), "computing gold")
    assert run_process(lock_folder(readings.settings), run.run_id) == "alive"
    ask(location, TERMINATE, run=run.run_id)
    wait_for(lambda: finished(location, run), "the end of the run")
    ended = location.instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status == dg.DagsterRunStatus.CANCELED

    assert published(readings, run) == {RAW: set(range(1, 11)), SILVER: set(range(1, 11))}
    assert times_published(readings, GOLD) == before
    wait_for(lambda: not any("java" in command for command in started_from(readings.settings.state)), "the JVM's end")
    wait_for(lambda: run_process(lock_folder(readings.settings), run.run_id) != "alive", "the end of its process")
    assert recover(lake) == [], "something was published by half"
    with ingest_lock(lake, RAW, timeout_s=0.0):
        pass
    look_after_backfills(location)
    assert status(location, backfill) == BulkActionStatus.COMPLETED_FAILED

    [again] = complete(daemon, launch(daemon, DAYS))
    assert again.status == dg.DagsterRunStatus.SUCCESS
    assert published(readings, again) == {GOLD: set(range(1, 11))}


def finished(daemon: Daemon, run: dg.DagsterRun) -> bool:
    found = daemon.instance.get_run_by_id(run.run_id)
    return found is not None and found.is_finished


def wait_for(happened: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, f"{what} took too long"
        time.sleep(0.05)
