"""Orders as a change feed writes them: an operation that is text, and amounts that are corrected to "missing"."""

from __future__ import annotations

from itertools import count
from typing import Any

from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, Rule, same_day
from platform_assets_tests.support.world import World

_FILE = count()


def order(number: int, amount: str | None, hour: int, op: str | None = "U", day: str = "2017-01-01") -> dict[str, Any]:
    """Return a version of an order, written at an hour of the second day."""
    written = f"2017-01-02T{hour:02}:00:00Z"
    return {"order_id": number, "op": op, "amount": amount, "ordered_on": day, "updated_at": written}


def deliver(world: World, *orders: dict[str, Any], arrival: str = "2017-01-02") -> None:
    """Land versions in a file of their own."""
    world.deliver_rows("orders", arrival, f"{next(_FILE):03}.jsonl", orders)


_ORDER = (
    Column("order_id", "long", "Which order.", nullable=False),
    Column("op", "string", "What was done with it: I, U or D."),
    Column("amount", "decimal(12,2)", "Dollars; -9999 where it is missing."),
    Column("ordered_on", "date", "When it was ordered.", nullable=False),
    Column("updated_at", "timestamp", "When it was written, UTC.", nullable=False),
)

RAW = Contract(
    name="raw.orders",
    description="Changes of orders as delivered.",
    owner="feeds@example.com",
    columns=_ORDER,
    key=("order_id",),
    source=LandingFiles("orders"),
    event_time="ordered_on",
    updated_at="updated_at",
    voided="op = 'D'",
)
SILVER = Contract(
    name="silver.orders",
    description="One row per order.",
    owner="feeds@example.com",
    columns=_ORDER,
    key=("order_id",),
    inputs=(Input("raw.orders", same_day()),),
    rules=(
        Rule("amount_known", "amount <> -9999", "The source corrects what it does not know to -9999.", breach="void"),
        Rule("amount_small", "amount < 1000", "Nobody orders so much."),
    ),
)
DOMAIN = Domain("feeds", (RAW, SILVER), "platform_assets_tests.support.domains.transforms")
