"""Dagster's own queue with the project's limits: backfills never take all of the machine, and daily runs go first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.selector import (
    PartitionRangeSelector,
    PartitionsByAssetSelector,
    PartitionsSelector,
)
from dagster._core.execution.backfill import PartitionBackfill
from dagster._daemon.backfill import execute_backfill_iteration

from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.instance.launcher import REFRESH_POOL, TABLES_POOL, create_pools
from platform_assets.settings import load_settings
from platform_assets_tests.support.orchestration.daemon import LOGGER, MIDNIGHT, NEXT, ONE, Daemon, running_daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS, land
from platform_assets_tests.support.world import World

ONLY_STARTS = {"module": "dagster._core.test_utils", "class": "MockedRunLauncher"}


@pytest.fixture
def queue(readings: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon whose runs, once launched, are at work for ever."""
    with running_daemon(tmp_path / "queue", monkeypatch, run_launcher=ONLY_STARTS) as daemon:
        create_pools(daemon.instance)
        yield daemon


def backfill(daemon: Daemon, *tables: str) -> None:
    """What the UI's "Materialize all" does, by the backfill daemon's own code."""
    graph = daemon.workspace.create_request_context().asset_graph
    every_day = PartitionsSelector(ranges=[PartitionRangeSelector(start=DAYS[0], end=DAYS[-1])])
    days = [PartitionsByAssetSelector(asset_key=dg.AssetKey([table]), partitions=every_day) for table in tables]
    name = f"backfill{time.monotonic_ns()}"
    daemon.instance.add_backfill(
        PartitionBackfill.from_partitions_by_assets(name, graph, time.time(), {}, daemon.instance, days, None, None, {})
    )
    errors = [error for error in execute_backfill_iteration(daemon.workspace, LOGGER) if error]
    assert not errors, errors


def names(runs: list[dg.DagsterRun]) -> list[str]:
    return ["refresh" if run.job_name == "refresh" else "backfill" for run in runs]


def test_backfills_leave_a_place_and_the_daily_run_goes_first(readings: World, queue: Daemon) -> None:
    for table in ("raw.readings", "silver.readings", "gold.sensor_week"):
        backfill(queue, table)
    land(readings, DAYS[0], DAYS[0])
    queue.schedules(MIDNIGHT)
    queue.schedules(ONE)
    assert sorted(names(queue.queued())) == ["backfill", "backfill", "backfill", "refresh"]
    launched = [*names(queue.launch()), *names(queue.launch())]
    assert sorted(launched) == ["backfill", "refresh"], "two places, and only one of them is for backfills"


def test_two_refreshes_never_work_at_the_same_time(readings: World, queue: Daemon) -> None:
    queue.schedules(MIDNIGHT)
    for day, now in ((DAYS[0], ONE), (DAYS[1], NEXT)):
        land(readings, day, day)
        queue.schedules(now)
    assert names(queue.queued()) == ["refresh", "refresh"]
    assert len(queue.launch()) == 1
    assert queue.launch() == []


def test_every_run_waits_in_one_of_the_pools() -> None:
    repository = build_definitions(load_settings(domains=SENSORS)).get_repository_def()
    assert repository.get_job("refresh").get_node_named("refresh_tables").definition.pools == {REFRESH_POOL}
    assert {pool for asset in repository.assets_defs_by_key.values() for pool in asset.node_def.pools} == {TABLES_POOL}


def test_a_limit_that_somebody_set_stays(tmp_path: Path) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        instance.event_log_storage.set_concurrency_slots(TABLES_POOL, 4)
        create_pools(instance)
        limits = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}
        assert limits == {TABLES_POOL: 4, REFRESH_POOL: 1}
