"""What a person accepts is what was looked at: everything that was found on it, and nothing that came since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute_step
from platform_assets.engine.results import StepResult
from platform_assets.operations.quarantine import acceptance
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, sale

RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"
KNOWN = 16
"""Days that are enough to tell an unusual one."""
DAY = date(2017, 1, KNOWN + 1)


def lines(number: int, **changes: Any) -> list[dict[str, Any]]:
    """Ten baskets of one line each, in the stores 1 to 5."""
    day = f"2017-01-{number:02}"
    return [sale(100 * number + n, 1, day, store_id=1 + n % 5, **changes) for n in range(10)]


def sixteen_days_alike(lakes: Lakes) -> World:
    """In all tables."""
    world = lakes.new(days=KNOWN + 1, domains=DAILY)
    for number in range(1, KNOWN + 1):
        world.deliver_rows("transactions", f"2017-01-{number:02}", "a.jsonl", lines(number))
    world.refresh()
    return world


def gates(world: World, table: str) -> list[str]:
    """Those that hold the day, the newest last."""
    with world.open() as platform:
        return [hold.gate for hold in platform.ledger.holds(table) if hold.day == DAY]


def accept(world: World, table: str, meanwhile: Callable[[], object] = lambda: None) -> StepResult:
    """As the command does it; others do something once the days were looked at, while Spark starts."""
    with world.open() as platform:
        found = acceptance(platform, table, [DAY])
        meanwhile()
        author = Author("person", "the shop was closed")
        return recompute_step(
            platform, lambda: world.spark, found.step, author, accept=found.checks, looked_at=found.made_from
        )


@pytest.mark.proof
def test_rows_that_came_since_a_day_was_looked_at_are_not_accepted(prepared: Prepared) -> None:
    """Days that volume can compare with are loaded first, in five tables."""
    world = prepared(sixteen_days_alike)
    world.deliver_rows("transactions", str(DAY), "a.jsonl", [])
    world.refresh()
    assert gates(world, SILVER) == ["volume"]

    def sales_come_and_are_taken_back() -> None:
        """As empty as before, through other rows, at which nobody has looked."""
        world.deliver_rows("transactions", str(DAY), "b.jsonl", lines(DAY.day, voided=True))
        with world.open() as platform:
            ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("ingest", "a test"))

    [finding] = accept(world, SILVER, sales_come_and_are_taken_back).held[DAY]
    assert finding.check == "volume"
    assert DAY not in world.digests()[SILVER]
    assert set(accept(world, SILVER).published) == {DAY}
