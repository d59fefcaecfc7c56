"""Jobs that schedules start beside the daily run: comparisons, keys that lie on two days, maintenance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.orchestration.build import build_definitions
from platform_assets.planning.retention import TASKS
from platform_assets.settings import SettingsError
from platform_assets_tests.support import feeds
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.feeds import deliver, order
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.readings import DAYS, ingest_only
from platform_assets_tests.support.own_domain import PACKAGE, deliver_sales, importable, write_domain
from platform_assets_tests.support.shelf import age, day, stage
from platform_assets_tests.support.world import MakeWorld, World

__all__ = ["run", "state"]
"""Fixtures."""

DECLARED = """reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),),
                comparisons=(Comparison("ledger", "{folder}", severity="block"),
                             Comparison("known", "{folder}", tolerance="0.01, 1 key"),
                             Comparison("silver", "silver.sales", by=("till",)),
                             Comparison("lost", "{folder}/nowhere")))"""

BEFORE = 'reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),))'


@pytest.mark.proof
def test_each_declared_comparison_is_a_check_with_a_severity_of_its_own_and_figures_to_chart(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """One refresh, then one run of the job that the schedule starts, in this process."""
    world = make_world(days=2, domains=PACKAGE, settle_s=0)
    copy = tmp_path / "ledger"
    copy.mkdir()
    changes = (("Amount, Column,", "Amount, Column, Comparison,"), (BEFORE, DECLARED.format(folder=copy)))
    with importable(write_domain(tmp_path / "home", contracts=changes)):
        for day in ("2017-01-01", "2017-01-02"):
            deliver_sales(world.settings.landing_folder, day, 3)
        world.refresh()
        rows = pl.DataFrame(read_arrow(Lake.at(world.settings.lake), "gold.tills"))
        other = pl.when(till=2).then(pl.lit("9.25")).otherwise("paid").cast(rows.schema["paid"])
        first = pl.col("event_date") == pl.date(2017, 1, 1)
        pl.concat([rows.filter(~first), rows.filter(first).with_columns(paid=other)]).write_parquet(copy / "a.parquet")

        definitions = build_definitions(world.settings)
        schedule = definitions.resolve_schedule_def("comparisons")
        assert (schedule.job_name, schedule.cron_schedule) == ("compare", "0 5 * * *")
        assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
        with pytest.raises(SettingsError, match="reconcile_cron is 'never'"):
            build_definitions(world.settings.model_copy(update={"reconcile_cron": "never"}))
        done = definitions.resolve_job_def("compare").execute_in_process()
        found = {one.check_name: one for one in done.get_asset_check_evaluations()}

    verdicts = {name: (one.passed, one.severity.value) for name, one in found.items()}
    assert verdicts == {
        "comparison_ledger": (False, "ERROR"),
        "comparison_known": (True, "WARN"),
        "comparison_silver": (True, "WARN"),
        "comparison_lost": (False, "WARN"),
    }
    figures = {name: value.value for name, value in found["comparison_ledger"].metadata.items()}
    assert figures["keys different"] == figures["days different"] == 1
    assert (figures["rows left"], figures["paid, left less right"]) == (6, -8.0)
    assert "different 2017-01-01: till 2: paid 1.25, not 9.25 (-8.00); brought by" in str(figures["keys"])
    assert "no golden copy at" in str(found["comparison_lost"].description)


@pytest.mark.proof
def test_the_job_fails_and_the_command_too_once_a_key_lies_on_two_days_and_both_name_it(
    make_world: MakeWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshes and two runs in this process."""
    world = make_world(days=3, domains=feeds.__name__)
    monkeypatch.setenv("PLATFORM_DOMAINS", feeds.__name__)
    monkeypatch.setenv("PLATFORM_STATE", str(world.settings.state))
    definitions = build_definitions(world.settings)
    schedule = definitions.resolve_schedule_def("keys")
    assert (schedule.job_name, schedule.default_status) == ("keys", dg.DefaultScheduleStatus.RUNNING)
    job = definitions.resolve_job_def("keys")
    deliver(world, order(1, "10.00", 1), order(2, "20.00", 1, day="2017-01-02"))
    world.refresh()
    assert job.execute_in_process().success
    assert run("admin", "verify", "--keys").out.strip() == "once silver.orders"
    deliver(world, order(2, "25.00", 2, day="2017-01-03"), arrival="2017-01-03")
    world.refresh()
    with pytest.raises(
        dg.Failure, match=r"count twice\. silver\.orders: 1 key on 2017-01-02 and 2017-01-03, first order"
    ):
        job.execute_in_process()
    told = run("admin", "verify", "silver.orders", "--keys")
    assert (told.code, told.out.strip()) == (
        1,
        "counted twice silver.orders; 1 key on 2017-01-02 and 2017-01-03, first order_id 2",
    )
    assert run("admin", "verify", "--keys", "--days", "2017-01-02").code == 2


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
