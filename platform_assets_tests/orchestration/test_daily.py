"""The daily run: everything up to the day that just ended, day after day, and nothing where the calendar has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickStatus

from platform_assets.engine.late.queue import late_queue
from platform_assets.orchestration.build import build_definitions
from platform_assets.records.decisions import LateDecision
from platform_assets.settings import SettingsError, load_settings
from platform_assets_tests.support.orchestration.daemon import (
    MIDNIGHT,
    NEXT,
    ONE,
    Daemon,
    enter_world,
    idle,
    published,
    run_one,
    running_daemon,
)
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS, land
from platform_assets_tests.support.world import MakeWorld, World


def test_missed_days_are_caught_up_in_one_run_and_those_never_delivered_are_named(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_TODAY", "2017-01-06")
    daemon.reload()
    for day in (*DAYS[:2], *DAYS[3:5]):
        land(readings, day, day)
    daemon.schedules(MIDNIGHT)
    daemon.schedules(ONE)
    [run] = daemon.launch()
    assert published(readings, run)["silver.readings"] == {1, 2, 4, 5}

    daemon.schedules(NEXT)
    tick = daemon.ticks("daily")[0]
    assert tick.status == TickStatus.SKIPPED
    assert tick.skip_reason == "up to 2017-01-05: nothing to do; never delivered: readings 2017-01-03"


def test_a_run_that_is_on_its_way_is_not_requested_again(readings: World, daemon: Daemon) -> None:
    land(readings, DAYS[0], DAYS[0])
    daemon.schedules(MIDNIGHT)
    daemon.schedules(ONE)
    daemon.schedules(NEXT)
    assert [tick.status for tick in daemon.ticks("daily")] == [TickStatus.SKIPPED, TickStatus.SUCCESS]
    assert len(daemon.queued()) == 1


def test_everything_is_on_by_default() -> None:
    repository = build_definitions(load_settings(domains=SENSORS)).get_repository_def()
    assert {sensor.name: sensor.default_status for sensor in repository.sensor_defs} == {
        "late_data": dg.DefaultSensorStatus.RUNNING,
        "announcements": dg.DefaultSensorStatus.RUNNING,
        "outbox": dg.DefaultSensorStatus.RUNNING,
        "published_elsewhere": dg.DefaultSensorStatus.RUNNING,
    }
    daily = repository.get_schedule_def("daily")
    assert daily.default_status == dg.DefaultScheduleStatus.RUNNING
    assert (daily.cron_schedule, daily.execution_timezone) == ("0 1 * * *", "UTC")
    maintenance = repository.get_schedule_def("maintenance")
    assert maintenance.default_status == dg.DefaultScheduleStatus.RUNNING
    assert (maintenance.cron_schedule, maintenance.job_name) == ("0 4 * * 0", "maintenance")


@pytest.mark.proof
def test_late_rows_that_a_contract_leaves_to_it_are_taken_by_the_deep_restatement(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs by the daemon."""
    world = make_world(days=3, domains=SENSORS, today=date(2017, 12, 31), settle_s=0)
    enter_world(world, monkeypatch)
    for day in DAYS[:3]:
        land(world, day, day)
    land(world, "2017-06-30", *DAYS[:3], name="late.jsonl")
    due = (MIDNIGHT.replace(day=1) + timedelta(days=32)).replace(day=1, hour=3)
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        run_one(daemon)
        daemon.schedules(due - timedelta(minutes=1))
        daemon.schedules(due + timedelta(seconds=30))
        [run] = daemon.launch()
        assert run.tags["platform/why"] == "deep restatement: 2 late rows of 2 days (raw.readings)"
        assert daemon.materialized(run)["silver.readings"] == published(world, run)["silver.readings"] == {2, 3}
        with world.open() as platform:
            [left] = late_queue(platform)
            decisions = platform.ledger.decisions(LateDecision)
            arrivals = platform.ledger.arrivals("raw.readings")
            [publication] = {arrival.publication for arrival in arrivals if arrival.kind == "approval"}
            taken = platform.ledger.publication(publication)
        assert taken is not None
        assert (left.day.day, left.days_late, left.state) == (1, 180, "waiting")
        assert (taken.who, taken.why) == ("deep restatement", run.tags["platform/why"])
        assert not decisions, "a contract took the rows, no person"
        daemon.schedules((due + timedelta(days=32)).replace(day=1, hour=3, second=30))
        tick = daemon.ticks("deep_restatement")[0]
        assert tick.skip_reason == "nothing to do: no late rows wait that a contract leaves to the deep restatement"


def test_a_time_that_is_no_cron_expression_is_named() -> None:
    with pytest.raises(SettingsError, match="daily_cron is 'at one'"):
        build_definitions(load_settings(domains=SENSORS, daily_cron="at one"))
    with pytest.raises(SettingsError, match="maintenance_cron is 'sundays'"):
        build_definitions(load_settings(domains=SENSORS, maintenance_cron="sundays"))
    with pytest.raises(SettingsError, match="deep_restatement_cron is 'monthly!'"):
        build_definitions(load_settings(domains=SENSORS, deep_restatement_cron="monthly!"))


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
