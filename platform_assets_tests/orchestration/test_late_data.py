"""Files that land become runs for exactly the days they touch, once, and again for a correction."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.test_utils import create_run_for_test

from platform_assets.engine.pending import waiting
from platform_assets.orchestration.automation import refresh_requests
from platform_assets.records.history import Hold
from platform_assets.records.refused import Attempt
from platform_assets_tests.support.orchestration.daemon import Daemon, idle, published, run_one
from platform_assets_tests.support.orchestration.readings import DAYS, ingest_only, land
from platform_assets_tests.support.world import World


def test_a_later_correction_under_a_new_name_runs_again(readings: World, daemon: Daemon) -> None:
    for day in DAYS:
        land(readings, day, day)
    first = run_one(daemon)
    assert first.tags["platform/why"] == "10 files landed (readings 2017-01-01..2017-01-10)"
    land(readings, DAYS[9], DAYS[1], DAYS[4], name="correction.jsonl")
    second = run_one(daemon)
    assert published(readings, second)["silver.readings"] == {2, 5}
    assert first.tags["dagster/run_key"] != second.tags["dagster/run_key"]
    assert idle(daemon)


@pytest.mark.proof
def test_a_run_takes_no_more_than_it_may_oldest_first(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_FILES_PER_RUN", "3")
    daemon.reload()
    for day in DAYS[:2]:
        for name in ("r.jsonl", "rr.jsonl"):
            land(readings, day, day, name=name)
    for day in DAYS[2:5]:
        land(readings, day, day)
    taken = []
    for _ in range(3):
        run = run_one(daemon)
        taken.append((published(readings, run)["raw.readings"], run.tags["platform/why"]))
    assert [days for days, _ in taken] == [{1}, {2, 3}, {4, 5}]
    assert taken[0][1] == "2 files landed (readings 2017-01-01); 5 more of newer dates, left for the next run"
    assert "3 files landed (readings 2017-01-02..2017-01-03); 2 more" in taken[1][1]
    assert idle(daemon)


def test_what_grows_or_cannot_be_taken_is_left_and_named(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run, started by the sensor."""
    monkeypatch.setenv("PLATFORM_SETTLE_S", "50")  # what is landed has rested for a minute
    daemon.reload()
    land(readings, DAYS[0], DAYS[0])
    land(readings, DAYS[0], DAYS[0], name="growing.jsonl")
    readings.deliver("readings", DAYS[0], "notes.txt", "by hand")
    growing = readings.settings.landing_folder / "readings" / DAYS[0] / "growing.jsonl"
    growing.touch()
    run = run_one(daemon)
    assert run.tags["platform/why"] == "1 file landed (readings 2017-01-01)"  # and nothing of what it did not take
    tick = daemon.tick()
    assert tick.status == TickStatus.SKIPPED
    assert str(tick.skip_reason).startswith("nothing to do; 1 still growing")
    assert "1 cannot be taken (readings/2017-01-01/notes.txt has the unknown ending '.txt'" in str(tick.skip_reason)
    land(readings, DAYS[0], DAYS[0], name="growing.jsonl")
    assert published(readings, run_one(daemon))["raw.readings"] == {1}


def test_a_queued_run_is_waited_for(readings: World, daemon: Daemon) -> None:
    land(readings, DAYS[0], DAYS[0])
    daemon.tick()
    [run] = daemon.queued()
    land(readings, DAYS[1], DAYS[1])
    assert f"run {run.run_id} of refresh is on its way" in str(daemon.tick().skip_reason)
    daemon.launch()
    assert idle(daemon)


def test_days_left_out_of_date_by_a_dead_run_are_computed_without_any_file(readings: World, daemon: Daemon) -> None:
    ingest_only(readings, DAYS[0])
    run = run_one(daemon)
    assert run.tags["platform/why"] == "1 day stale (silver.readings 2017-01-01)"
    assert run.tags["platform/reasons"] == "never computed 2"
    assert published(readings, run) == {"silver.readings": {1}, "gold.sensor_week": {1}}
    assert idle(daemon)


def test_days_stale_only_through_code_start_no_run_but_are_counted(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs, started by the sensor."""
    land(readings, DAYS[0], DAYS[0])
    run_one(daemon)
    assert idle(daemon)
    other = {"silver.readings": "other", "gold.sensor_week": "other"}
    monkeypatch.setattr("platform_assets.engine.platform.code_versions", lambda catalogue: other)
    tick = daemon.tick()
    assert tick.status == TickStatus.SKIPPED
    assert tick.skip_reason == (
        "nothing to do; 2 days wait for a person (code 2): `platform-assets refresh` or a backfill takes them"
    )
    land(readings, DAYS[0], DAYS[0], name="correction.jsonl")
    corrected = run_one(daemon)
    assert published(readings, corrected) == {"raw.readings": {1}, "silver.readings": {1}, "gold.sensor_week": {1}}
    assert idle(daemon)


def test_a_day_held_for_what_it_would_become_again_starts_no_run(readings: World, daemon: Daemon) -> None:
    ingest_only(readings, DAYS[0])
    with readings.open() as platform:
        [(day, refused)] = waiting(platform, 1).stale["silver.readings"].items()
        now = datetime.now(UTC)
        platform.ledger.hold([Hold("silver.readings", day, Attempt(refused), "gate", "for the test", "a run", now)])
    assert idle(daemon)
    land(readings, DAYS[0], DAYS[0], name="correction.jsonl")
    assert published(readings, run_one(daemon))["silver.readings"] == {1}


@pytest.mark.proof
def test_work_that_a_failed_run_left_is_tried_again_after_a_pause_that_grows(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(readings, DAYS[0], DAYS[0])
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("platform_assets.orchestration.jobs.refresh", lambda *_, **__: 1 / 0)
        first = run_one(daemon)
    assert first.status == dg.DagsterRunStatus.FAILURE
    tick = daemon.tick()
    assert f"run {first.run_id} left this undone (failure), next try at" in str(tick.skip_reason)
    monkeypatch.setattr(refresh_requests, "_FIRST_PAUSE_S", 0.0)
    second = run_one(daemon)
    assert second.tags["dagster/run_key"] == first.tags["dagster/run_key"].removesuffix("0") + "1"
    assert idle(daemon)


def test_a_run_that_takes_files_itself_is_waited_for(readings: World, daemon: Daemon) -> None:
    land(readings, DAYS[0], DAYS[0])
    taker = at_work(daemon, "raw.readings", "silver.readings")
    assert f"run {taker} is taking files itself" in str(daemon.tick().skip_reason)
    assert daemon.queued() == []


def test_a_run_that_only_computes_keeps_no_file_waiting_but_its_days(readings: World, daemon: Daemon) -> None:
    ingest_only(readings, DAYS[0])
    other = at_work(daemon, "silver.readings")
    assert f"1 day stale (silver.readings 2017-01-01); run {other} may be computing them" in str(
        daemon.tick().skip_reason
    )
    land(readings, DAYS[1], DAYS[1])
    assert daemon.tick().status == TickStatus.SUCCESS
    assert len(daemon.queued()) == 1


def at_work(daemon: Daemon, *tables: str) -> str:
    """A run of some assets that somebody started."""
    keys = frozenset(dg.AssetKey([table]) for table in tables)
    run = create_run_for_test(daemon.instance, "__ASSET_JOB", status=dg.DagsterRunStatus.STARTED, asset_selection=keys)
    return str(run.run_id)
