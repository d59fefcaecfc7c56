"""What waits, from listings and the ledger alone, decided on one moment, also where the ledger is behind."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import ContractError
from platform_assets.engine import publishing
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.pending import Waiting, waiting
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.step import stage
from platform_assets.engine.step.compute import Computed
from platform_assets.operations.opening import open_platform
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange, new_publication
from platform_assets.settings import load_settings
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.kills.paper import DAYS, RAW, SILVER, digest_of, put, settings
from platform_assets_tests.support.shelf import change, contents
from platform_assets_tests.support.shelf import stage as staged
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


OTHERS, MINE = [("others, newer", 20)], [("mine, older", 10)]


def publish_unindexed(other: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose publisher has died, or has yet to tell the ledger."""
    with monkeypatch.context() as dies:
        dies.setattr(publishing, "record", lambda *_: None)
        put(other, "others", {SILVER: {DAYS[0]: OTHERS}})


def with_one_day(platform: Platform) -> stage.Stage:
    """A stage in which a day of silver lies over what was released."""
    found = stage.Stage(platform, Author("mine", "a refresh"))
    with publishing.new_stage(platform, (SILVER,)) as (publication, _):
        staged(platform.lake, SILVER, {DAYS[0]: MINE}, publication)
        made = change(platform.lake, SILVER, publication)
        known = {"digest": digest_of(MINE), "fingerprint": "mine"}
        days = {day: content.model_copy(update=known) for day, content in made.days.items()}
        made = made.model_copy(update={"days": days, "reads": {RAW: 0}})
        found._add(Computed(publication, (made,), StepResult(SILVER, dict(days))))
    found.results[SILVER] = StepResult(SILVER)
    return found


def test_a_stage_does_not_overwrite_what_was_released_and_is_not_indexed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_platform(settings(tmp_path)) as mine, open_platform(settings(tmp_path)) as other:
        put(mine, "delivery", {RAW: {day: [("r", 1)] for day in DAYS}})
        put(mine, "history", {SILVER: {day: [("old", 1)] for day in DAYS}})
        trial = with_one_day(mine)
        publish_unindexed(other, monkeypatch)
        # What was overtaken has to be computed again, for which there are no real rows here.
        with pytest.raises(ContractError, match=r"reads raw\.transactions, which is not yet as its contract says"):
            trial.publish(no_session)
        assert contents(mine.lake, SILVER)[DAYS[0]] == OTHERS


def test_days_are_known_by_what_the_release_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_platform(settings(tmp_path)) as mine, open_platform(settings(tmp_path)) as other:
        put(mine, "history", {SILVER: {day: [("old", 1)] for day in DAYS}})
        publish_unindexed(other, monkeypatch)
        snapshot = LakeSnapshot.now(mine)
        assert snapshot.number == 1
        assert snapshot.digests(SILVER)[DAYS[0]] == digest_of(OTHERS)
        assert snapshot.marks([SILVER])[SILVER][DAYS[0]].release == 1
