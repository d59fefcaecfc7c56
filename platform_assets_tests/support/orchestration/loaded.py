"""Three days of readings that are published, that Dagster knows of, and that a person refreshes at a terminal."""

from __future__ import annotations

from platform_assets.engine.platform import Author
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.paper import refresh_on_paper
from platform_assets_tests.support.orchestration.partitions import days_of_asset
from platform_assets_tests.support.orchestration.readings import DAYS, TABLES, land
from platform_assets_tests.support.world import World

LOADED = DAYS[:3]
GREEN = {"MATERIALIZED": LOADED}
NOTHING_NEW = "nothing was published without Dagster"


def refresh(world: World, run: str) -> None:
    """What a person does at a terminal."""
    with world.open() as platform:
        refresh_on_paper(platform, None, Author(run, "refresh"))


def load(world: World, daemon: Daemon) -> None:
    """Three days that are published, and that Dagster knows of."""
    for day in LOADED:
        land(world, day, day)
    refresh(world, "refresh-1")
    daemon.tick("published_elsewhere")
    assert [days_of_asset(daemon, table) for table in TABLES] == [GREEN] * 3


def lift(world: World) -> None:
    """End all holds."""
    with world.open() as platform:
        platform.ledger.drop(platform.ledger.holds())
