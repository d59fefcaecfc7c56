"""The schedule looks without Spark, and the job does what is due, step by step, with figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from platform_assets.lakehouse.layout import Lake
from platform_assets.planning.retention import TASKS
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.readings import DAYS, ingest_only
from platform_assets_tests.support.shelf import age, day, stage
from platform_assets_tests.support.world import World


def test_a_run_is_started_where_something_is_due(readings: World, daemon: Daemon) -> None:
    for number in DAYS[:2]:
        ingest_only(readings, number)
    daemon.stop_schedules()
    daemon.start_schedule("maintenance")
    now = datetime.now(UTC)
    sunday = (now + timedelta(days=7 - now.isoweekday() % 7)).replace(hour=4, minute=0, second=0)
    daemon.schedules(sunday - timedelta(minutes=1))
    daemon.schedules(sunday + timedelta(seconds=30))
    said = daemon.ticks("maintenance")[0].skip_reason
    assert said == "nothing to do: no day has too many files, and everything on disk is needed"

    lake = Lake.at(readings.settings.lake)
    left = stage(lake, "raw.readings", {day(0): [("x", 1)]})
    age(lake, "raw.readings")
    daemon.schedules(sunday + timedelta(days=7, seconds=30))
    [run] = daemon.launch()
    assert "0 days to compact" in run.tags["platform/why"]
    assert not lake.stage_path("raw.readings", left).exists()
    [finished] = daemon.instance.get_runs(dg.RunsFilter(run_ids=[run.run_id]))
    assert finished.status == dg.DagsterRunStatus.SUCCESS
    told = {}
    for entry in daemon.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_OUTPUT):
        event = entry.get_dagster_event()
        told[event.step_key] = event.step_output_data.metadata
    assert list(told) == list(TASKS)
    assert told["stages"]["files"].value == 2
    assert left in str(told["stages"]["done"].value)
    assert told["deletion"]["done"].value == "nothing was due"
