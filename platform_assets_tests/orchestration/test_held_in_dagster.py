"""Days that Spark computes and gates refuse, as Dagster shows them: by its own job, by a terminal, and healed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from platform_assets.engine.late.withdrawals import withdraw
from platform_assets.engine.platform import Author
from platform_assets.orchestration.assets.checks import NEW_SINCE
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.in_process import materialize_range
from platform_assets_tests.support.orchestration.backfills import reasons
from platform_assets_tests.support.orchestration.daemon import QUIET, Daemon, enter_world, run_one, running_daemon
from platform_assets_tests.support.orchestration.partitions import days_of_asset, days_of_check, newest_of_check
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, SENSORS, SILVER, land
from platform_assets_tests.support.orchestration.refused import break_gold, land_second_sensor
from platform_assets_tests.support.world import MakeWorld, World

FIRST, LAST = DAYS[:2]
BAD = f"readings/{LAST}/bad.jsonl"


@pytest.fixture
def shown(make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Daemon]]:
    """Two days of readings that the sensor of late data brought up to date."""
    readings = make_world(days=2, domains=SENSORS)
    enter_world(readings, monkeypatch)
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        for day in (FIRST, LAST):
            land(readings, day, day)
        assert run_one(daemon).status == dg.DagsterRunStatus.SUCCESS
        assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST, LAST]}
        yield readings, daemon


def test_a_day_that_the_job_refresh_holds_is_failed_by_that_very_run_and_green_once_corrected(
    shown: tuple[World, Daemon],
) -> None:
    """Three runs of the sensor, computed by Spark."""
    readings, daemon = shown
    assert days_of_check(daemon, GOLD, "volume") == {}, "with two days there is nothing to compare them with"
    land_second_sensor(readings, LAST)
    with pytest.MonkeyPatch.context() as patch:
        break_gold(patch)
        run = run_one(daemon)
    assert (run.job_name, run.status) == ("refresh", dg.DagsterRunStatus.FAILURE)
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST], "FAILED": [LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST], "FAILED": [LAST]}
    assert newest_of_check(daemon, GOLD, "freshness")["status"] == "FAILED"
    assert newest_of_check(daemon, SILVER, "freshness")["status"] == "SUCCEEDED"
    told = reasons(daemon, run).splitlines()
    assert "1 row without coldest, which may not be null" in told[1]
    assert "; readers see its last good content, 1 row of release " in told[1]
    assert told[2] == NEW_SINCE
    assert told[3].startswith(f"platform-assets withdraw {BAD} ")
    daemon.tick("published_elsewhere")
    assert daemon.launch() == [], "one run is enough"

    land_second_sensor(readings, LAST, "corrected.jsonl")
    assert run_one(daemon).status == dg.DagsterRunStatus.SUCCESS
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST, LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST, LAST]}
    assert newest_of_check(daemon, GOLD, "freshness")["status"] == "SUCCEEDED"


@pytest.mark.proof
def test_a_failed_run_of_assets_leaves_good_days_green_and_days_without_history_unjudged(
    shown: tuple[World, Daemon],
) -> None:
    """A run of two days, of which gold's second is held, and two of a single day."""
    readings, daemon = shown
    land_second_sensor(readings, LAST)
    definitions = build_definitions(readings.settings)
    first, last = date.fromisoformat(FIRST), date.fromisoformat(LAST)
    with pytest.MonkeyPatch.context() as patch:
        break_gold(patch)
        assert materialize_range(definitions, daemon.instance, first, last).failures
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST], "FAILED": [LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST], "FAILED": [LAST]}
    assert "EXECUTION_FAILED" not in days_of_check(daemon, GOLD, "volume")
    assert LAST not in days_of_check(daemon, GOLD, "volume").get("SUCCEEDED", [])

    land_second_sensor(readings, LAST, "more.jsonl")
    assert not materialize_range(definitions, daemon.instance, last, last).failures
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST, LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST, LAST]}
    assert LAST not in days_of_check(daemon, GOLD, "volume").get("SUCCEEDED", [])

    alone = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=daemon.instance,
        asset_selection=[asset_key(GOLD)],
        partition_key=LAST,
        run_config=QUIET | {"ops": {"gold_sensor_week": {"config": {"force": True}}}},
    )
    assert alone.success
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST, LAST]}
    assert LAST not in days_of_check(daemon, GOLD, "volume").get("SUCCEEDED", [])


@pytest.mark.proof
def test_a_day_held_at_a_terminal_is_red_until_its_delivery_is_withdrawn(shown: tuple[World, Daemon]) -> None:
    """A refresh by the sensor and two at a terminal."""
    readings, daemon = shown
    land_second_sensor(readings, LAST)
    with pytest.MonkeyPatch.context() as patch:
        break_gold(patch)
        readings.refresh()
        assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST, LAST]}
        daemon.tick("published_elsewhere")
        [run] = daemon.launch()
    assert (run.job_name, run.status) == ("held_days", dg.DagsterRunStatus.FAILURE)
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST], "FAILED": [LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST], "FAILED": [LAST]}
    assert f"platform-assets withdraw {BAD} " in reasons(daemon, run)

    with readings.open() as platform:
        withdraw(platform, lambda: readings.spark, [BAD], Author("a person", "it should not have come"))
    readings.refresh()
    daemon.tick("published_elsewhere")
    assert days_of_asset(daemon, GOLD) == {"MATERIALIZED": [FIRST, LAST]}
    assert days_of_check(daemon, GOLD, "contract") == {"SUCCEEDED": [FIRST, LAST]}
