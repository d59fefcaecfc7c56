"""Real Dagster runs, computed by Spark: ranges, late rows, days that gates refuse, and what their events say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from platform_assets.orchestration.assets.checks import NEW_SINCE
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.pictures import with_charts
from platform_assets.orchestration.build import build_definitions, materialize_range, run_job
from platform_assets_tests.support.history import TWO_GOLDS
from platform_assets_tests.support.orchestration.daemon import (
    QUIET,
    Daemon,
    days_of_asset,
    days_of_check,
    enter_world,
    newest_of_check,
    reasons,
    run_one,
    running_daemon,
)
from platform_assets_tests.support.orchestration.readings import (
    DAYS,
    GOLD,
    SENSORS,
    SILVER,
    break_gold,
    land,
    land_second_sensor,
)
from platform_assets_tests.support.world import MakeWorld, World, product, sale

BEGINS, ENDS = date(2017, 1, 1), date(2017, 1, 3)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Three days of sales; no file and no variable says so: runs find them by the settings that are handed to them."""
    world = make_world(days=3, domains=TWO_GOLDS)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT")])
    for day in ("2017-01-01", "2017-01-02", "2017-01-03"):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(1, 1, day, basket_id=int(day[-2:]))])
    return world


def days_of(instance: dg.DagsterInstance, table: str) -> set[str]:
    return instance.get_materialized_partitions(dg.AssetKey([table]))


@pytest.mark.proof
def test_a_range_turns_green_day_by_day_and_a_late_row_mends_only_its_days(
    world: World, instance: dg.DagsterInstance
) -> None:
    """Three runs of real assets, one step after the other: Dagster takes longer than Spark."""
    definitions = build_definitions(world.settings)
    outcome = materialize_range(definitions, instance, BEGINS, ENDS)
    assert outcome.failures == ()
    for table in ("raw.products", "silver.transactions", "gold.daily_sales", "gold.household_28d"):
        assert days_of(instance, table) == {"2017-01-01", "2017-01-02", "2017-01-03"}
    event = instance.get_latest_materialization_event(dg.AssetKey(["gold.daily_sales"]))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    digest = world.digests()["gold.daily_sales"][date.fromisoformat(str(event.asset_materialization.partition))]
    assert metadata["digest"].value == digest
    assert {"dagster/row_count", "bytes", "files", "seconds"} <= set(metadata)
    assert metadata["why"].value == "never computed"

    before = world.digests()
    late = sale(2, 1, "2017-01-02", basket_id=22)
    world.deliver_rows("transactions", "2017-01-03", "late.jsonl", [late])
    refreshed = run_job(definitions, instance, "refresh", {"platform/why": "late row"})
    assert refreshed.failures == ()
    logged = [entry.user_message for entry in instance.all_logs(refreshed.run_id)]
    assert "silver.transactions: 1 of 1 day" in logged
    assert "gold.household_28d: 2 of 2 days" in logged
    changed = {
        table: {day.day for day, digest in days.items() if before[table][day] != digest}
        for table, days in world.digests().items()
    }
    assert changed["silver.transactions"] == {2}
    assert changed["gold.daily_sales"] == {2}
    assert changed["gold.household_28d"] == {2, 3}
    assert changed["raw.products"] == set()

    assert materialize_range(definitions, instance, BEGINS, ENDS).failures == ()
    event = instance.get_latest_materialization_event(dg.AssetKey(["gold.daily_sales"]))
    assert event is not None
    assert event.asset_materialization is not None
    result = str(event.asset_materialization.metadata["result"].value)
    assert result.startswith("already up to date: nothing was computed")
    assert "force: true" in result

    with world.open() as platform:
        contract = platform.catalogue["gold.daily_sales"]
        *kept, last = contract.columns
        renamed = replace(contract, columns=(*kept, replace(last, name="renamed")))
        shown = with_charts(platform, renamed, {ENDS: {}})[ENDS]
    assert isinstance(shown["preview"], dg.TableMetadataValue)
    seen = [column.name for column in shown["preview"].schema.columns]
    assert seen == [column.name for column in kept], "whoever shows a day may have code with other columns"


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


@pytest.mark.proof
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
    assert told[3].startswith(f"platform-assets undo {BAD} ")
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
