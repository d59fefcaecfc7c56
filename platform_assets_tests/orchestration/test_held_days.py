"""A held day is a failed one in Dagster, too: with its red check, what may be to blame, and until it heals."""

from datetime import date

import dagster as dg
import pytest

from platform_assets.orchestration.instance.events import plan_days
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.orchestration.daemon import (
    GREEN,
    LOADED,
    NOTHING_NEW,
    Daemon,
    days_of_asset,
    days_of_check,
    launch,
    lift,
    load,
    newest_of_check,
    reasons,
    refresh,
)
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, RAW, SILVER, hold_a_correction
from platform_assets_tests.support.world import World

DAY = DAYS[1]


def fail_over(daemon: Daemon, table: str, day: str) -> None:
    """A run that fails, and was to make a day."""

    @dg.op
    def compute(context: dg.OpExecutionContext) -> None:
        plan_days(context, {table: [date.fromisoformat(day)]})
        raise dg.Failure("something else went wrong")

    @dg.job
    def some_job() -> None:
        compute()

    some_job.execute_in_process(instance=daemon.instance, raise_on_error=False)


def show(daemon: Daemon) -> dg.DagsterRun:
    """The run that shows held days, as a tick requests it."""
    daemon.tick("published_elsewhere")
    [run] = daemon.launch()
    return run


def test_a_day_held_by_the_command_line_is_shown_as_failed_once_and_green_again_once_published(
    readings: World, daemon: Daemon
) -> None:
    load(readings, daemon)
    assert days_of_check(daemon, SILVER, "volume") == {"SUCCEEDED": LOADED}
    hold_a_correction(readings)
    for _ in range(2):
        daemon.tick("published_elsewhere")
        assert [run.job_name for run in daemon.queued()] == ["held_days"], "not asked for twice"
    [run] = daemon.launch()
    assert (run.job_name, run.status) == ("held_days", dg.DagsterRunStatus.FAILURE)
    assert days_of_asset(daemon, SILVER) == {"MATERIALIZED": [DAYS[0], DAYS[2]], "FAILED": [DAY]}
    assert days_of_asset(daemon, RAW) == days_of_asset(daemon, GOLD) == GREEN
    told = reasons(daemon, run)
    assert told.startswith("Days held without a run of Dagster: 1.\n")
    assert f"{SILVER} {DAY}: held since" in told
    assert "too few rows: 0 rows; readers see its last good content" in told
    assert daemon.tick("published_elsewhere").skip_reason == NOTHING_NEW
    assert daemon.launch() == []
    announced = {tick.skip_reason for tick in daemon.ticks("announcements")} - {None, "nothing to announce"}
    assert announced == {f"announced: {SILVER}: {DAY} held."}, "and not the run as well"
    assert days_of_check(daemon, SILVER, "volume") == {"SUCCEEDED": [DAYS[0], DAYS[2]], "FAILED": [DAY]}
    assert days_of_check(daemon, SILVER, "contract") == {"SUCCEEDED": LOADED}
    [held] = daemon.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey([SILVER]), "volume"), limit=1
    )
    assert held.evaluation is not None
    assert held.evaluation.severity == dg.AssetCheckSeverity.ERROR
    assert held.evaluation.blocking
    assert str(held.evaluation.metadata["instead"].value).startswith("readers see its last good content")
    fresh = newest_of_check(daemon, SILVER, "freshness")
    assert (fresh["status"], fresh["evaluation"]["severity"]) == ("FAILED", "ERROR")
    assert f"1 held, {DAY} since" in fresh["evaluation"]["description"]
    lift(readings)
    refresh(readings, "refresh-3")
    daemon.tick("published_elsewhere")
    assert days_of_asset(daemon, SILVER) == GREEN
    assert days_of_check(daemon, SILVER, "volume") == {"SUCCEEDED": LOADED}


@pytest.mark.proof
def test_a_day_that_a_person_put_back_is_failed_without_a_check_that_would_be_to_blame(
    readings: World, daemon: Daemon
) -> None:
    load(readings, daemon)
    hold_a_correction(readings, ROLL_BACK)
    assert "readers see what was put back, " in reasons(daemon, show(daemon))
    assert days_of_asset(daemon, SILVER)["FAILED"] == [DAY]
    for check in ("contract", "conservation", "volume"):
        assert days_of_check(daemon, SILVER, check) == {"SUCCEEDED": LOADED}


@pytest.mark.proof
def test_a_day_that_needs_no_publication_to_be_good_is_green_again(readings: World, daemon: Daemon) -> None:
    load(readings, daemon)
    fail_over(daemon, SILVER, DAY)
    assert days_of_asset(daemon, SILVER)["FAILED"] == [DAY]
    said = daemon.tick("published_elsewhere").skip_reason
    assert said == "shown now: days that are held no more, 1 over all tables"
    assert days_of_asset(daemon, SILVER) == GREEN
    assert days_of_check(daemon, SILVER, "volume") == {"SUCCEEDED": LOADED}
    assert daemon.tick("published_elsewhere").skip_reason == NOTHING_NEW


@pytest.mark.proof
def test_a_day_that_is_held_no_more_when_its_run_begins_is_no_failure(readings: World, daemon: Daemon) -> None:
    load(readings, daemon)
    hold_a_correction(readings)
    daemon.tick("published_elsewhere")
    lift(readings)
    [run] = daemon.launch()
    assert run.status == dg.DagsterRunStatus.SUCCESS
    assert days_of_asset(daemon, SILVER) == GREEN


@pytest.mark.proof
def test_good_days_of_a_run_that_was_given_up_are_green_and_a_held_one_red_until_it_is_good(
    readings: World, daemon: Daemon
) -> None:
    load(readings, daemon)
    hold_a_correction(readings)
    backfill = launch(daemon, LOADED)
    [run] = daemon.queued()
    daemon.instance.add_run_tags(run.run_id, {"dagster/max_retries": "0"})
    daemon.instance.report_run_failed(run)  # as the daemon does that takes it from the queue
    assert days_of_asset(daemon, SILVER) == {"FAILED": LOADED}
    for _ in range(2):
        daemon.tick("published_elsewhere")
        assert days_of_asset(daemon, SILVER) == {"MATERIALIZED": [LOADED[0], LOADED[2]], "FAILED": [LOADED[1]]}
    lift(readings)
    refresh(readings, "refresh-3")
    daemon.tick("published_elsewhere")
    assert days_of_asset(daemon, SILVER) == {"MATERIALIZED": LOADED}
    assert [run.status for run in daemon.instance.get_runs(dg.RunsFilter.for_backfill(backfill))] == [
        dg.DagsterRunStatus.FAILURE
    ]
