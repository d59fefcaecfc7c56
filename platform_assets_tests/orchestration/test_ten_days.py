"""Days come and go with everything switched on: every run touches what landed, and every second tick finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from platform_assets_tests.support.orchestration.daemon import (
    Daemon,
    enter_world,
    idle,
    published,
    run_one,
    running_daemon,
)
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS, land
from platform_assets_tests.support.world import MakeWorld, World


def days_pass(
    readings: World,
    daemon: Daemon,
    late: dict[int, int],
    days: int,
    patch: pytest.MonkeyPatch,
    touched_by: Callable[[dg.DagsterRun], dict[str, set[int]]],
) -> None:
    """Land a day's file on every day, and on some a late one for an earlier day.

    Args:
        readings: the installation.
        daemon: that looks after it.
        late: the earlier day, by the day its late file lands.
        days: how many.
        patch: sets the clock.
        touched_by: says what a run did.
    """
    for number, today in enumerate(DAYS[:days], start=1):
        patch.setenv("PLATFORM_TODAY", today)
        daemon.reload()
        land(readings, today, today)
        touched = {number}
        if number in late:
            land(readings, today, DAYS[late[number] - 1], name="late.jsonl")
            touched.add(late[number])
        run = run_one(daemon)
        assert run.status == dg.DagsterRunStatus.SUCCESS
        week = {day for found in touched for day in range(found, min(found + 7, number + 1))}
        assert touched_by(run) == {"raw.readings": touched, "silver.readings": touched, "gold.sensor_week": week}
        assert idle(daemon)
    patch.setenv("PLATFORM_TODAY", "2024-01-01")
    daemon.reload()
    assert idle(daemon)
    assert {day.day for day in readings.digests()["gold.sensor_week"]} == set(range(1, days + 1))


@pytest.mark.proof
def test_ten_days_with_late_data(readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    days_pass(readings, daemon, {5: 2, 9: 1}, 10, monkeypatch, lambda run: published(readings, run))


@pytest.mark.proof
def test_three_days_computed_by_spark_and_told_to_dagster(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = make_world(days=3, domains=SENSORS)
    enter_world(readings, monkeypatch)
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        days_pass(readings, daemon, {3: 1}, 3, monkeypatch, daemon.materialized)
