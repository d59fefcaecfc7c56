"""Runs that Dagster gives up before they begin: what the days are corrects what their backfill says."""

import dagster as dg
from dagster._core.execution.backfill import BulkActionStatus

from platform_assets_tests.support.orchestration.backfills import ask, launch, look_after_backfills, status
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.loaded import LOADED, NOTHING_NEW, lift, load, refresh
from platform_assets_tests.support.orchestration.partitions import days_of_asset
from platform_assets_tests.support.orchestration.readings import GOLD, RAW, SILVER, hold_a_correction
from platform_assets_tests.support.world import World

COUNTS = """
query ($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill {
      assetBackfillData { assetBackfillStatuses {
        ... on AssetPartitionsStatusCounts { assetKey { path } numPartitionsMaterialized numPartitionsFailed }
      } }
    }
  }
}
"""


def given_up(daemon: Daemon) -> str:
    """A backfill of days that are loaded, whose run is not dispatched in time and not tried again."""
    backfill = launch(daemon, LOADED)
    [run] = daemon.queued()
    daemon.instance.add_run_tags(run.run_id, {"dagster/max_retries": "0"})
    daemon.instance.report_run_failed(run)  # as the daemon does that takes it from the queue
    for _ in range(3):
        look_after_backfills(daemon)
    assert status(daemon, backfill) == BulkActionStatus.COMPLETED_FAILED
    return backfill


def counts(daemon: Daemon, backfill: str) -> dict[str, tuple[int, int]]:
    """Days done and failed, by table, as the page of a backfill shows them."""
    data = ask(daemon, COUNTS, id=backfill)["partitionBackfillOrError"]["assetBackfillData"]
    return {
        of["assetKey"]["path"][0]: (of["numPartitionsMaterialized"], of["numPartitionsFailed"])
        for of in data["assetBackfillStatuses"]
    }


def test_good_days_of_a_run_that_was_given_up_are_green_and_so_is_their_backfill(
    readings: World, daemon: Daemon
) -> None:
    load(readings, daemon)
    backfill = given_up(daemon)
    assert days_of_asset(daemon, SILVER) == {"FAILED": LOADED}
    assert counts(daemon, backfill) == dict.fromkeys((RAW, SILVER, GOLD), (0, 3))
    assert "good days of 1 failed backfill" in str(daemon.tick("published_elsewhere").skip_reason)
    assert [days_of_asset(daemon, table) for table in (RAW, SILVER, GOLD)] == [{"MATERIALIZED": LOADED}] * 3
    assert status(daemon, backfill) == BulkActionStatus.COMPLETED_SUCCESS
    assert counts(daemon, backfill) == dict.fromkeys((RAW, SILVER, GOLD), (3, 0))
    assert daemon.tick("published_elsewhere").skip_reason == NOTHING_NEW


def test_a_held_day_stays_red_in_both_until_it_is_good(readings: World, daemon: Daemon) -> None:
    load(readings, daemon)
    hold_a_correction(readings)
    backfill = given_up(daemon)
    for _ in range(2):
        daemon.tick("published_elsewhere")
        assert days_of_asset(daemon, SILVER) == {"MATERIALIZED": [LOADED[0], LOADED[2]], "FAILED": [LOADED[1]]}
        assert status(daemon, backfill) == BulkActionStatus.COMPLETED_FAILED
        assert counts(daemon, backfill)[SILVER] == (2, 1)
    lift(readings)
    refresh(readings, "refresh-3")
    daemon.tick("published_elsewhere")
    assert status(daemon, backfill) == BulkActionStatus.COMPLETED_SUCCESS
    assert [run.status for run in daemon.instance.get_runs(dg.RunsFilter.for_backfill(backfill))] == [
        dg.DagsterRunStatus.FAILURE
    ]
