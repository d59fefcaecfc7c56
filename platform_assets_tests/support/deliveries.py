"""Ways in which the sample can arrive, and that the end is the same after each of them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta
from pathlib import Path

from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.engine.platform import Author
from platform_assets.engine.step.recompute import recompute_step
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.planning.steps import Step
from platform_assets_tests.support.history import RETAIL
from platform_assets_tests.support.models.oracle import DERIVED, Oracle
from platform_assets_tests.support.world import MakeWorld, World

Landing = Callable[[World, Simulation], Iterator[date | None]]
"""Lands one batch after another, and says up to which arrival date everything is there; None if no date says it."""

SALES = "silver.transactions"


def in_order(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Half of the days, the other half, then everything that came late."""
    for until in (simulation.first + timedelta(days=simulation.days // 2), simulation.last, simulation.last_arrival):
        land(simulation, world.settings.landing_folder, until)
        yield until


def shuffled(world: World, simulation: Simulation) -> Iterator[date | None]:
    """All files in two deliveries that have nothing to do with their dates."""
    aside = world.settings.state / "aside"
    land(simulation, aside, simulation.last_arrival)
    files = sorted(path for path in aside.glob("*/*/*") if not path.parts[-3].startswith("."))
    random.Random(simulation.seed).shuffle(files)
    shutil.copytree(aside / ".truth", world.settings.landing_folder / ".truth")
    for half, until in ((files[::2], None), (files[1::2], simulation.last_arrival)):
        for file in half:
            _deliver(file, world.settings.landing_folder / file.relative_to(aside))
        yield until


def twice(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Every file once more under another name, after it was taken."""
    land(simulation, world.settings.landing_folder, simulation.last)
    yield simulation.last
    land(simulation, world.settings.landing_folder, simulation.last_arrival)
    for file in sorted(world.settings.landing_folder.glob("*/*/*")):
        if not file.parts[-3].startswith("."):
            _deliver(file, file.with_name(f"again-{file.name}"))
    yield simulation.last_arrival


def _deliver(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def check(
    make_world: MakeWorld, simulation: Simulation, way: Landing, unusual: Collection[date] = (), domain: str = RETAIL
) -> None:
    """Land in some way, refresh after each batch, and compare every table with the oracle of all that is there.

    Args:
        make_world: the fixture.
        simulation: what is landed.
        way: how.
        unusual: days of sales that are held, exactly these, because their volume is far from all that is known when
            they are first computed. Somebody has to accept them before everything is there.
        domain: whose tables are computed.
    """
    world = make_world(days=simulation.days, today=simulation.last_arrival, domains=domain)
    lake = Lake.at(world.settings.lake)
    with world.open() as platform:
        tables = [table for table in DERIVED if table in platform.catalogue.names]
    assert tables
    met: set[date] = set()
    for until in way(world, simulation):
        world.refresh()
        met |= _accept_volume(world)
        if until is not None:
            oracle = Oracle(world.settings.landing_folder, until, min(until, simulation.last))
            for table in tables:
                assert oracle.differences(table, read_arrow(lake, table)) == [], (until, table)
    assert met == set(unusual)


def _accept_volume(world: World) -> set[date]:
    """Publish the sales that were held for their volume, and what is made from them; nothing else may be held."""
    with world.open() as platform:
        holds = platform.ledger.holds()
        assert {(hold.table, hold.gate) for hold in holds} <= {(SALES, "volume")}
        days = {hold.day for hold in holds}
        if days:
            author = Author("test", "few customers around a holiday")
            recompute_step(platform, lambda: world.spark, Step(SALES, tuple(sorted(days))), author, accept=["volume"])
    if days:
        world.refresh()
    return days
