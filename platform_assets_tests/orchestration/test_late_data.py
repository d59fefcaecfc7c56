"""Files that land become runs for exactly the days they touch, once, and again for a correction or after a failure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.test_utils import create_run_for_test

from platform_assets.engine.pending import Waiting, waiting
from platform_assets.orchestration.automation import refresh_requests
from platform_assets.orchestration.automation.refresh_requests import WHY_TAG, describe, pause_left_s, request, work_of
from platform_assets.planning.circuit import Try
from platform_assets.planning.plan import Plan
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.sources.landing import Problem
from platform_assets_tests.support.orchestration.daemon import Daemon, idle, published, run_one
from platform_assets_tests.support.orchestration.readings import DAYS, ingest_only, land
from platform_assets_tests.support.world import World


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


@pytest.mark.proof
def test_a_run_that_takes_files_or_waits_for_its_turn_is_waited_for(readings: World, daemon: Daemon) -> None:
    land(readings, DAYS[0], DAYS[0])
    taker = at_work(daemon, "raw.readings", "silver.readings")
    assert f"run {taker} is taking files itself" in str(daemon.tick().skip_reason)
    assert daemon.queued() == []
    taking = daemon.instance.get_run_by_id(taker)
    assert taking is not None
    daemon.instance.report_run_canceled(taking)
    daemon.tick()
    [run] = daemon.queued()
    land(readings, DAYS[1], DAYS[1])
    assert f"run {run.run_id} of refresh is on its way" in str(daemon.tick().skip_reason)
    daemon.launch()
    assert idle(daemon)


@pytest.mark.proof
def test_days_left_out_of_date_by_a_dead_run_are_computed_without_any_file_unless_they_are_held(
    readings: World, daemon: Daemon
) -> None:
    ingest_only(readings, DAYS[0])
    with readings.open() as platform:
        [(day, refused)] = waiting(platform, 1).stale["silver.readings"].items()
        now = datetime.now(UTC)
        hold = Hold("silver.readings", day, Attempt(refused), "gate", "for the test", "a run", now)
        platform.ledger.hold([hold])
    assert idle(daemon)
    with readings.open() as platform:
        platform.ledger.drop([hold])
    run = run_one(daemon)
    assert run.tags["platform/why"] == "1 day stale (silver.readings 2017-01-01)"
    assert run.tags["platform/reasons"] == "never computed 2"
    assert published(readings, run) == {"silver.readings": {1}, "gold.sensor_week": {1}}
    assert idle(daemon)


@pytest.mark.proof
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


@pytest.mark.proof
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


MINUTE, DAY = 60.0, 86_400.0
EMPTY_PLAN = Plan()


def tries(*ended_ago_s: float) -> Sequence[dg.RunRecord]:
    """Of the same work, newest first."""
    now = time.time()
    return [SimpleNamespace(end_time=now - ago, update_timestamp=datetime.now(UTC)) for ago in ended_ago_s]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("ended_ago_s", "left_s"),
    [
        ((), 0),
        ((0,), 5 * MINUTE),
        ((4 * MINUTE,), MINUTE),
        ((6 * MINUTE,), 0),
        ((0, 9 * MINUTE), 20 * MINUTE),
        ((0, 1, 2), 80 * MINUTE),
        ((0, *range(1, 9)), 360 * MINUTE),
    ],
)
def test_every_pause_is_four_times_the_last_one_up_to_six_hours(ended_ago_s: tuple[float, ...], left_s: float) -> None:
    assert pause_left_s(tries(*ended_ago_s)) == pytest.approx(left_s, abs=10)


def test_nobody_waits_for_a_clock_that_was_ahead_when_a_run_ended() -> None:
    assert pause_left_s(tries(-DAY)) == 0
    assert pause_left_s(tries(0, -DAY)) == pytest.approx(20 * MINUTE, abs=10), "by the try that ended by a true clock"


def stale_on(days: Sequence[date], *problems: Problem) -> Waiting:
    """Days of some tables to recompute, and files that nobody can take."""
    stale = {f"silver.table_{number}": dict.fromkeys(days, "mark") for number in range(9)}
    return Waiting({}, None, 0, (), problems, {}, {}, stale, EMPTY_PLAN, {})


def test_what_a_run_publishes_is_not_on_record_with_files_that_it_did_not_take() -> None:
    waits = stale_on([date(2017, 1, 1)], Problem("sales/notes.txt", "has the unknown ending '.txt'"))
    assert "notes.txt" in describe(waits)
    why = request(waits, "work", ()).tags[WHY_TAG]
    assert why.startswith("9 days stale (silver.table_0 2017-01-01")
    assert "notes.txt" not in why


def test_a_long_reason_says_that_it_goes_on() -> None:
    why = request(stale_on([date(2017, 1, 1) + timedelta(2 * day) for day in range(9)]), "work", ()).tags[WHY_TAG]
    assert (len(why), why[-1]) == (250, "…")


def test_a_try_of_a_circuit_waits_as_its_policy_says_and_not_for_the_pauses_of_runs_that_tried_it_before() -> None:
    def work(due: datetime) -> str:
        plan = Plan(tries={"silver.x": Try(date(2017, 1, 1), due)})
        return work_of(replace(stale_on([]), plan=plan), {})

    first, next_one = datetime(2017, 1, 2, 1, tzinfo=UTC), datetime(2017, 1, 2, 3, tzinfo=UTC)
    assert work(first) == work(first)
    assert work(first) != work(next_one)
