"""A day that is large lies in several files, and nothing else about it is different."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from hashlib import sha256
from typing import Any

import pyarrow.parquet as pq
import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.maintenance import ToCompact, maintain
from platform_assets.operations.readers import read
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.verify import verify
from platform_assets.planning.selection import Selection
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

SENSORS = "platform_assets_tests.support.domains.sensors"
RAW, SILVER, GOLD = "raw.readings", "silver.readings", "gold.sensor_week"
LARGE, SMALL = "2017-01-01", "2017-01-02"
MANY, FEW = 4_000, 3
PARTS = 0.01
LARGER_PARTS = 0.015
"""MiB of a part, of which the large day has several, and of fewer."""


def readings(world: World, day: str, name: str, sensors: range, celsius: str, hour: int = 6) -> None:
    """Readings of some sensors, and one that is colder than anything, delivered as Parquet would be, but as lines."""
    names = [sha256(str(n).encode()).hexdigest()[:16] for n in sensors]  # which no codec makes smaller
    rows = [{"sensor": name, "measured_at": f"{day}T{hour:02}:00:00Z", "celsius": celsius} for name in names]
    bad = {"sensor": f"bad{name}", "measured_at": f"{day}T{hour:02}:00:00Z", "celsius": "-400.00"}
    world.deliver_rows("readings", day, f"{name}.jsonl", [*rows, bad])


def two_days(lakes: Lakes, part_mib: float) -> World:
    """A large day in four files and a small one, loaded."""
    world = lakes.new(days=2, domains=SENSORS, part_mib=part_mib, compaction_files=1)
    for part in range(4):
        readings(world, LARGE, f"part{part}", range(part * MANY // 4, (part + 1) * MANY // 4), f"{part}.50")
    readings(world, SMALL, "few", range(FEW), "9.00")
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(two_days, PARTS)


def files(world: World, day: str) -> dict[str, int]:
    lake, at = Lake.at(world.settings.lake), date.fromisoformat(day)
    return {table: len(live_files(lake.table_path(table)).get(at, ())) for table in (RAW, SILVER, GOLD)}


def checks(result: RefreshResult) -> Mapping[str, Any]:
    """What gates said, by table and day."""
    return {step.table: {day: str(said) for day, said in step.checks.items()} for step in result.steps}


def correct(world: World) -> RefreshResult:
    """The large day's first reading comes once more, of another hour, and so does one of the small day."""
    readings(world, LARGE, "more", range(1), "30.00", hour=7)
    return world.refresh()


@pytest.mark.proof
def test_content_and_gates_are_the_same_whatever_the_number_of_files(world: World, prepared: Prepared) -> None:
    whole = prepared(two_days, 32)
    large, small = files(world, LARGE), files(world, SMALL)
    assert all(count > 1 for count in large.values()), large
    assert (small[RAW], small[SILVER]) == (1, 1), "whose week has all of the large day"
    assert files(whole, LARGE) == {RAW: 1, SILVER: 1, GOLD: 1}
    assert world.digests() == whole.digests()
    assert world.rows("quarantine.readings") == whole.rows("quarantine.readings")
    assert checks(correct(world)) == checks(correct(whole))
    assert world.digests() == whole.digests()


@pytest.mark.proof
def test_keys_of_one_file_are_in_no_other_and_in_order(world: World) -> None:
    """So that corrections of a few keys, and readers of one, find within each file where these are not."""
    path, seen = Lake.at(world.settings.lake).table_path(SILVER), set[str]()
    for file in live_files(path)[date.fromisoformat(LARGE)]:
        keys = pq.read_table(str(path / file.path), columns=["sensor"])["sensor"].to_pylist()
        assert keys == sorted(keys)
        assert seen.isdisjoint(keys)
        seen.update(keys)
    assert len(seen) == MANY


@pytest.mark.proof
@pytest.mark.parametrize("engine", ["arrow", "polars", "pandas", "duckdb"])
def test_every_reader_finds_all_of_a_day_in_several_files(world: World, engine: Any) -> None:
    found = read(SILVER, days=LARGE, engine=engine, settings=world.settings)
    assert (len(found.fetchall()) if engine == "duckdb" else len(found)) == MANY


@pytest.mark.proof
def test_a_day_in_several_files_is_corrected_and_put_back(world: World) -> None:
    before, had = world.digests(), files(world, LARGE)
    with world.open() as platform:
        release = platform.current_release().number
    correct(world)
    assert world.digests()[SILVER] != before[SILVER]
    assert files(world, LARGE)[SILVER] > 1
    with world.open() as platform:
        rollback(platform, chosen_publications(platform, to=release), Author("undo", "it was wrong"))
    after = world.digests()
    assert [after[table] for table in (SILVER, GOLD)] == [before[table] for table in (SILVER, GOLD)]
    assert [files(world, LARGE)[table] for table in (SILVER, GOLD)] == [had[table] for table in (SILVER, GOLD)]


@pytest.mark.proof
def test_a_day_in_several_files_is_compacted_once_and_comes_out_the_same_when_verified(world: World) -> None:
    content, had = world.digests(), files(world, LARGE)
    world = World(world.settings.model_copy(update={"part_mib": LARGER_PARTS}), world.spark)
    assert SILVER in {day.table for day in compact(world)}
    left = files(world, LARGE)
    assert 1 < left[SILVER] < had[SILVER]
    assert not compact(world), "parts are not joined again and again"
    assert world.digests() == content
    with world.open() as platform, private_folder(platform.lake) as folder:
        found = verify(
            platform,
            lambda: world.spark,
            Selection(frozenset({SILVER, GOLD}), frozenset({date.fromisoformat(LARGE)})),
            folder,
        )
    assert {day.verdict for table in found for day in table.days} == {"equal"}


def compact(world: World) -> tuple[ToCompact, ...]:
    with world.open() as platform:
        return maintain(platform, lambda: world.spark, "compaction", Author("maintenance run", "a test")).compaction
