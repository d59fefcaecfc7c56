"""Real Dagster runs: ranges, single days, held days, and what their events say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import dagster as dg
import pytest

from platform_assets.orchestration.assets.pictures import illustrated
from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.in_process import materialize_range, run_job
from platform_assets_tests.support.history import TWO_GOLDS
from platform_assets_tests.support.world import MakeWorld, World, product, sale

FIRST, LAST = date(2017, 1, 1), date(2017, 1, 3)


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
    """Two runs of real assets, one step after the other: Dagster takes longer than Spark."""
    definitions = build_definitions(world.settings)
    outcome = materialize_range(definitions, instance, FIRST, LAST)
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

    with world.open() as platform:
        contract = platform.catalogue["gold.daily_sales"]
        *kept, last = contract.columns
        renamed = replace(contract, columns=(*kept, replace(last, name="renamed")))
        shown = illustrated(platform, renamed, {LAST: {}})[LAST]
    assert isinstance(shown["preview"], dg.TableMetadataValue)
    seen = [column.name for column in shown["preview"].schema.columns]
    assert seen == [column.name for column in kept], "whoever shows a day may have code with other columns"


def test_a_day_that_was_never_delivered_fails_alone_and_by_name(world: World, instance: dg.DagsterInstance) -> None:
    for file in (world.settings.landing_folder / "transactions" / "2017-01-02").iterdir():
        file.unlink()
    (world.settings.landing_folder / "transactions" / "2017-01-02").rmdir()
    outcome = materialize_range(build_definitions(world.settings), instance, FIRST, LAST)
    [failure] = outcome.failures
    assert "2017-01-02: its source has not delivered it" in failure
    assert "What to do: `platform-assets why raw.transactions 2017-01-02`" in failure
    [run] = instance.get_runs()
    assert run.asset_selection, "the page of runs names its target by these"
    assert days_of(instance, "raw.transactions") == {"2017-01-01", "2017-01-03"}
    assert days_of(instance, "silver.transactions") == set()
