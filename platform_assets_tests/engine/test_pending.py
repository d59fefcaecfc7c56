"""What waits, from listings and the ledger alone: files to take and to leave, quiet days, missing days, held days."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.pending import Waiting, waiting
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.state.planner import plan_steps
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange, new_publication
from platform_assets.records.refused import Attempt
from platform_assets.settings import load_settings
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets_tests.support.world import World, product, sale


def days(*numbers: int) -> tuple[date, ...]:
    return tuple(date(2017, 1, number) for number in numbers)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Five days of the retail domain, of which the last is today; nothing here needs Spark."""
    dates = {"calendar_first": "2017-01-01", "calendar_last": "2017-01-31", "today": "2017-01-05"}
    return World(load_settings(state=tmp_path / "state", **dates), cast("SparkSession", None))


def look(world: World, most_files: int = 100) -> Waiting:
    with world.open() as platform:
        return waiting(platform, most_files)


def load(world: World, table: str, *loaded: date) -> None:
    """Days that are loaded and empty."""
    with world.open() as platform:
        change = TableChange(
            table=table, schema_string=raw_schema(platform.catalogue[table]).json(), days=loaded_empty(loaded)
        )
        publish_changes(platform, new_publication(), "ingest", [change], Author("r", "a test"))


def test_all_tables_files_are_taken_up_to_one_arrival_date(world: World) -> None:
    for day in ("2017-01-01", "2017-01-02", "2017-01-03"):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(1, 1, day)])
        world.deliver_rows("products", day, "p.jsonl", [product(1, day, "MEAT")])
    found = look(world, most_files=5)
    assert found.until == date(2017, 1, 2)
    assert {table: len(files) for table, files in found.files.items()} == {"raw.products": 2, "raw.transactions": 2}
    assert found.left == 2
    everything = look(world, most_files=6)
    assert (everything.until, everything.left) == (None, 0)


def test_quiet_days_end_where_the_run_does_and_missing_ones_before_today(world: World) -> None:
    world.deliver_rows("transactions", "2017-01-01", "t.jsonl", [])
    world.deliver_rows("transactions", "2017-01-03", "t.jsonl", [])
    found = look(world, most_files=1)
    assert found.until == date(2017, 1, 1)
    assert found.quiet == {"raw.products": days(1)}
    assert found.missing == {"raw.transactions": days(2, 4)}
    assert look(world).quiet == {"raw.products": days(1, 2, 3, 4, 5)}


def test_what_arrives_after_today_is_not_seen(world: World) -> None:
    world.deliver_rows("transactions", "2017-01-06", "t.jsonl", [])
    assert look(world).files == {}


def test_a_day_whose_same_day_input_is_held_is_no_work_yet(world: World) -> None:
    load(world, "raw.transactions", *days(1))
    load(world, "raw.products", *days(1))
    load(world, "silver.transactions", *days(1))
    load(world, "silver.products", *days(1))
    assert "gold.daily_sales" in look(world).stale
    refused = look(world).stale["silver.transactions"][days(1)[0]]
    hold = Hold("silver.transactions", days(1)[0], Attempt(refused), "gate", "for the test", "r", datetime.now(UTC))
    with world.open() as platform:
        platform.ledger.hold([hold])
        assert "silver.transactions" not in {step.table for step in plan_steps(platform).steps}
    found = look(world)
    assert "silver.transactions" not in found.stale
    assert "gold.daily_sales" not in found.stale
    assert "silver.products" in found.stale
