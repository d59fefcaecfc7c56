"""A table whose circuit is open is published by none of the ways that Dagster has, and each says so first."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickStatus

from platform_assets.engine.circuits import CircuitOpenError, circuits
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.breaker import close, freeze, override
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.build import build_definitions
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets_tests.support.days_on_paper import plan, stage
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.orchestration.daemon import (
    MIDNIGHT,
    ONE,
    QUIET,
    Daemon,
    complete,
    launch,
    load,
    newest_of_check,
    reasons,
)
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, SILVER, ingest_on_paper, land
from platform_assets_tests.support.world import World

DAY = date.fromisoformat(DAYS[1])
SAYS = f"the circuit of {SILVER} is frozen since "


@pytest.fixture
def stopped(request: pytest.FixtureRequest, readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> int:
    """A correction is in raw, and a person or failures have opened the circuit; the release that readers see."""
    load(readings, daemon)
    land(readings, DAYS[2], DAYS[1], name="correction.jsonl")
    with readings.open() as platform:
        ingest_on_paper(platform, Author("taken", "a test"))
        if getattr(request, "param", "") == "open":
            refused = Attempt(waiting(platform, 1).stale[SILVER][DAY], platform.version(SILVER))
            for night in range(5):
                hold = Hold(SILVER, DAY, refused, "volume", "no rows", f"{night}", datetime.now(UTC))
                platform.ledger.verdicts.refuse([hold])
        else:
            freeze(platform, SILVER, Author("zoe", "prices are wrong", "zoe"))
        release = platform.current_release().number
    monkeypatch.setattr("platform_assets.orchestration.jobs.refresh", refresh)
    return release


@pytest.mark.parametrize("stopped", ["frozen", pytest.param("open", marks=pytest.mark.proof)], indirect=True)
def test_neither_sensor_schedule_backfill_run_nor_plan_publishes_and_each_says_so_first(
    readings: World, daemon: Daemon, stopped: int
) -> None:
    """No run starts Spark: what is stopped is not computed either."""
    with readings.open() as platform:
        says = f"the circuit of {SILVER} is {circuits(platform)[SILVER].state} since "
    tick = daemon.tick()
    assert tick.status == TickStatus.SKIPPED
    assert str(tick.skip_reason).startswith(f"nothing to do; {says}")

    daemon.schedules(MIDNIGHT)
    daemon.schedules(ONE)
    scheduled = daemon.ticks("daily")[0]
    assert scheduled.status == TickStatus.SKIPPED
    assert says in str(scheduled.skip_reason)

    definitions = build_definitions(readings.settings)
    by_hand = definitions.resolve_job_def("refresh").execute_in_process(
        instance=daemon.instance, run_config=QUIET, raise_on_error=False
    )
    forced = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=daemon.instance,
        asset_selection=[asset_key(SILVER)],
        partition_key=DAYS[1],
        run_config=QUIET | {"ops": {"silver_readings": {"config": {"force": True}}}},
        raise_on_error=False,
    )
    backfill = complete(daemon, launch(daemon, [DAYS[1]], [SILVER, GOLD]))
    for run in (by_hand.dagster_run, forced.dagster_run, *backfill):
        record = daemon.instance.get_run_by_id(run.run_id)
        assert record is not None
        assert record.status == dg.DagsterRunStatus.FAILURE
        assert reasons(daemon, run).startswith(says), run.job_name

    with readings.open() as platform:
        for tables in ([SILVER], [GOLD]):
            file = plan(tables=tables, days={"list": [DAYS[1]]}, policy="recompute")
            assert says in next(each.what for each in explain(platform, file).obstacles if each.blocks)
        stage(platform, "trial", {GOLD: {DAY: ("asked for",)}})
        with pytest.raises(CircuitOpenError, match=f"{GOLD} is computed from it and waits"):
            publish_stage(platform, no_session, Author("ada", "a test"), "trial")
        assert platform.current_release().number == stopped


@pytest.mark.proof
def test_the_check_of_the_asset_says_where_its_circuit_stands_and_people_are_told_once(
    readings: World, daemon: Daemon, stopped: int
) -> None:
    def look() -> None:
        job = build_definitions(readings.settings).resolve_job_def("check_freshness")
        assert job.execute_in_process(instance=daemon.instance, run_config=QUIET).success

    look()
    checked = newest_of_check(daemon, SILVER, "circuit")
    assert (checked["status"], checked["evaluation"]["severity"]) == ("FAILED", "ERROR")
    assert checked["evaluation"]["description"].startswith(SAYS)
    waits = newest_of_check(daemon, GOLD, "circuit")
    assert waits["evaluation"]["severity"] == "WARN"
    assert waits["evaluation"]["description"].startswith(f"{GOLD} waits: {SAYS}")
    [record] = daemon.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(asset_key(SILVER), "circuit"), limit=1
    )
    assert record.evaluation is not None
    shown = {name: str(value.value) for name, value in record.evaluation.metadata.items()}
    assert (shown["state"], shown["why"]) == ("frozen", "opened by zoe: prices are wrong")
    assert shown["history"].startswith(f"**{SILVER} open** by day")
    assert len(shown["history"]) < 1000, "or Dagster hides it behind a link"

    title = f"{SILVER}: its circuit is open, nothing of it is published."
    daemon.tick("announcements")
    daemon.tick("announcements")
    told = [tick.skip_reason for tick in daemon.ticks("announcements")]
    assert told[:3].count(f"announced: {title}") == 1, told

    with readings.open() as platform:
        override(platform, SILVER, datetime.now(UTC) + timedelta(hours=1), Author("zoe", "for the audit", "zoe"))
    assert "is closed" not in str(daemon.tick("announcements").skip_reason)
    with readings.open() as platform:
        close(platform, SILVER, Author("zoe", "they are right", "zoe"))
    look()
    assert newest_of_check(daemon, SILVER, "circuit")["status"] == "SUCCEEDED"
    said = daemon.tick("announcements").skip_reason
    assert said == f"announced: {SILVER}: its circuit is closed; waiting days are published again."
    assert [run.job_name for run in daemon.queued()] == ["refresh"], "the sensor asked for what publishes what waited"


@pytest.mark.proof
def test_the_sensor_asks_for_a_run_as_soon_as_a_try_is_due_and_for_none_in_vain(
    readings: World, daemon: Daemon
) -> None:
    load(readings, daemon)
    with readings.open() as platform:
        refused = Attempt(platform.ledger.current_days(SILVER)[DAY].fingerprint, platform.version(SILVER))
        for night in range(5):
            hold = Hold(SILVER, DAY, refused, "volume", f"{SILVER} on {DAY}: no rows", f"{night}", datetime.now(UTC))
            platform.ledger.hold([hold])
    assert daemon.tick().status == TickStatus.SKIPPED
    land(readings, DAYS[2], DAYS[1], name="correction.jsonl")
    with readings.open() as platform:
        ingest_on_paper(platform, Author("taken", "a test"))
    assert daemon.tick().status == TickStatus.SUCCESS
    [run] = [run for run in daemon.queued() if run.job_name == "refresh"]
    assert run.tags["platform/why"] == f"circuits to try ({SILVER} {DAY})"
