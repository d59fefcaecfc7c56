"""Silver and gold equal what DuckDB computes from the simulator's truth, however the files arrived."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.read import read_arrow
from platform_assets_tests.support.models.oracle import DERIVED, Oracle
from platform_assets_tests.support.world import MakeWorld, World

Landing = Callable[[World, Simulation], Iterator[date | None]]
"""Lands one batch after another, and says up to which arrival date everything is there; None if no date says it."""


def in_order(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Half of the days, the other half, then everything that came late."""
    for until in (simulation.first + timedelta(days=simulation.days // 2), simulation.last, simulation.last_arrival):
        land(simulation, world.settings.landing, until)
        yield until


def shuffled(world: World, simulation: Simulation) -> Iterator[date | None]:
    """All files in two deliveries that have nothing to do with their dates."""
    aside = world.settings.state / "aside"
    land(simulation, aside, simulation.last_arrival)
    files = sorted(path for path in aside.glob("*/*/*") if not path.parts[-3].startswith("."))
    random.Random(simulation.seed).shuffle(files)
    shutil.copytree(aside / ".truth", world.settings.landing / ".truth")
    for half, until in ((files[::2], None), (files[1::2], simulation.last_arrival)):
        for file in half:
            _deliver(file, world.settings.landing / file.relative_to(aside))
        yield until


def twice(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Every file once more under another name, after it was taken."""
    land(simulation, world.settings.landing, simulation.last)
    yield simulation.last
    land(simulation, world.settings.landing, simulation.last_arrival)
    for file in sorted(world.settings.landing.glob("*/*/*")):
        if not file.parts[-3].startswith("."):
            _deliver(file, file.with_name(f"again-{file.name}"))
    yield simulation.last_arrival


def _deliver(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def check(make_world: MakeWorld, simulation: Simulation, way: Landing) -> None:
    """Land in some way, refresh after each batch, and compare every table with the oracle of all that is there."""
    world = make_world(days=simulation.days, today=simulation.last_arrival)
    lake = Lake(world.settings.lake)
    for until in way(world, simulation):
        world.refresh()
        if until is not None:
            oracle = Oracle(world.settings.landing, until, min(until, simulation.last))
            for table in DERIVED:
                assert oracle.differences(table, read_arrow(lake, table)) == [], (until, table)


@pytest.fixture(autouse=True)
def _compiled(spark: SparkSession) -> Iterator[None]:
    """Tens of thousands of rows are worth compiling for, unlike the few of other tests."""
    chosen = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: str(spark.conf.get(name)) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def test_five_days_equal_the_oracle_to_the_cent(make_world: MakeWorld) -> None:
    """Twenty thousand lines in two deliveries, with everything that goes wrong with them."""
    check(make_world, Simulation(seed=1, days=5), shuffled)


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", [in_order, shuffled, twice])
@pytest.mark.parametrize("seed", [1, 2])
def test_sixty_days_equal_the_oracle_to_the_cent(make_world: MakeWorld, seed: int, way: Landing) -> None:
    check(make_world, Simulation(seed=seed, days=60), way)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", [in_order, shuffled, twice])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_year_equals_the_oracle_to_the_cent(make_world: MakeWorld, seed: int, way: Landing) -> None:
    check(make_world, Simulation(seed=seed), way)
