"""Sensor readings of ten days, for what Dagster does about them."""

from __future__ import annotations

from platform_assets.engine.platform import Author
from platform_assets_tests.support.orchestration.paper import ingest_on_paper
from platform_assets_tests.support.world import World

SENSORS = "platform_assets_tests.support.domains.sensors"
RAW, SILVER, GOLD = TABLES = ("raw.readings", "silver.readings", "gold.sensor_week")
DAYS = [f"2017-01-{day:02}" for day in range(1, 11)]


def land(world: World, arrival: str, *days: str, name: str = "r.jsonl", celsius: str = "20.00") -> None:
    """One reading a day in one file, two minutes after the hour of its name."""
    hour = 10 + len(name)
    rows = [{"sensor": "a", "measured_at": f"{day}T{hour}:00:00Z", "celsius": celsius} for day in days]
    world.deliver_rows("readings", arrival, name, rows)


def ingest_only(world: World, day: str) -> None:
    """What a run leaves that dies after its first table."""
    land(world, day, day)
    with world.open() as platform:
        ingest_on_paper(platform, Author("dead", "a test"))
