"""Sensor readings of ten days, for what Dagster does about them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Author
from platform_assets.records.history import Hold
from platform_assets.records.refused import Attempt
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


def hold_a_correction(world: World, gate: str = "volume", reason: str = "too few rows: 0 rows") -> None:
    """What a refresh at a terminal does to a day that comes out wrong."""
    land(world, DAYS[2], DAYS[1], name="bad.jsonl")
    day = date.fromisoformat(DAYS[1])
    with world.open() as platform:
        ingest_on_paper(platform, Author("refresh-2", "refresh"))
        refused = Attempt(waiting(platform, 1).stale[SILVER][day])
        said = f"{SILVER} on {day}: {reason}"
        platform.ledger.hold([Hold(SILVER, day, refused, gate, said, "refresh-2", datetime.now(UTC))])
