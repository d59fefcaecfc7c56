"""Orders as a change feed delivers them."""

from __future__ import annotations

from itertools import count
from typing import Any

from platform_assets_tests.support.world import World

FEEDS = "platform_assets_tests.support.domains.feeds"
_FILE = count()


def order(number: int, amount: str | None, hour: int, op: str | None = "U", day: str = "2017-01-01") -> dict[str, Any]:
    """Return a version of an order, written at an hour of the second day."""
    written = f"2017-01-02T{hour:02}:00:00Z"
    return {"order_id": number, "op": op, "amount": amount, "ordered_on": day, "updated_at": written}


def deliver(world: World, *orders: dict[str, Any], arrival: str = "2017-01-02") -> None:
    """Land versions in a file of their own."""
    world.deliver_rows("orders", arrival, f"{next(_FILE):03}.jsonl", orders)
