"""Silver and gold equal what DuckDB computes from the simulator's truth, however the files arrived."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.read import read_arrow
from platform_assets_tests.domains.retail.oracle import DERIVED, Oracle
from platform_assets_tests.world import MakeWorld, World

Landing = Callable[[World, Simulation], Iterator[None]]


def in_order(world: World, simulation: Simulation) -> Iterator[None]:
    """Half of the days, the other half, then everything that came late."""
    for until in (simulation.first + timedelta(days=simulation.days // 2), simulation.last, simulation.last_arrival):
        land(simulation, world.settings.landing, until)
        yield


def shuffled(world: World, simulation: Simulation) -> Iterator[None]:
    """All files in two deliveries that have nothing to do with their dates."""
    aside = world.settings.state / "aside"
    land(simulation, aside, simulation.last_arrival)
    files = sorted(path for path in aside.glob("*/*/*") if not path.parts[-3].startswith("."))
    random.Random(simulation.seed).shuffle(files)
    shutil.copytree(aside / ".truth", world.settings.landing / ".truth")
    for half in (files[::2], files[1::2]):
        for file in half:
            _deliver(file, world.settings.landing / file.relative_to(aside))
        yield


def twice(world: World, simulation: Simulation) -> Iterator[None]:
    """Every file once more under another name, after it was taken."""
    land(simulation, world.settings.landing, simulation.last)
    yield
    land(simulation, world.settings.landing, simulation.last_arrival)
    for file in sorted(world.settings.landing.glob("*/*/*")):
        if not file.parts[-3].startswith("."):
            _deliver(file, file.with_name(f"again-{file.name}"))
    yield


def _deliver(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def check(make_world: MakeWorld, simulation: Simulation, way: Landing) -> None:
    """Land in some way, refresh after each delivery, and compare every table with the oracle."""
    world = make_world(days=simulation.days, today=simulation.last_arrival)
    for _ in way(world, simulation):
        world.refresh()
    oracle = Oracle(world.settings.landing, simulation.last_arrival, simulation.last)
    lake = Lake(world.settings.lake)
    for table in DERIVED:
        assert oracle.differences(table, read_arrow(lake, table)) == [], table


@pytest.fixture(autouse=True)
def _compiled(spark: SparkSession) -> Iterator[None]:
    """A quarter of a million rows are worth compiling for, unlike the few of other tests."""
    chosen = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: str(spark.conf.get(name)) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", [in_order, shuffled, twice])
@pytest.mark.parametrize("seed", [1, 2])
def test_sixty_days_equal_the_oracle_to_the_cent(make_world: MakeWorld, seed: int, way: Landing) -> None:
    check(make_world, Simulation(seed=seed, days=60), way)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", [in_order, shuffled, twice])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_year_equals_the_oracle_to_the_cent(make_world: MakeWorld, seed: int, way: Landing) -> None:
    check(make_world, Simulation(seed=seed), way)
