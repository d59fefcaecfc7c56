"""Twenty stores, and rows of some of them computed alone into a stage."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.operations.stages.stages import publish_stage, refresh_stage
from platform_assets.planning.selection import Request, scope_of
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, product, sale

SILVER, GOLD = "silver.transactions", "gold.daily_sales"
DAYS = tuple(date(2017, 1, day) for day in range(1, 5))
STORES = tuple(range(330, 350))
SOLD = 4
"""Lines of each store and day."""
LATER = f"{DAYS[-1]}T12:00:"


def line(day: date, store: int, number: int, **changes: Any) -> dict[str, Any]:
    basket = day.day * 100_000 + store * 100 + number
    return sale(basket, 1 + number % 2, str(day), store_id=store, **changes)


def twenty_stores(lakes: Lakes) -> World:
    """Four days of twenty stores, loaded."""
    world = lakes.new(days=len(DAYS), domains=DAILY)
    products = [product(1, str(DAYS[0]), "MEAT"), product(2, str(DAYS[0]), "DAIRY")]
    world.deliver_rows("products", str(DAYS[0]), "p.jsonl", products)
    for day in DAYS:
        rows = [line(day, store, number) for store in STORES for number in range(SOLD)]
        world.deliver_rows("transactions", str(day), "t.jsonl", rows)
    world.refresh()
    return world


def author() -> Author:
    return Author("test", "a test")


def correct(world: World, corrections: Collection[tuple[date, int, int]], again: int = 0) -> None:
    """Other values of some lines, up to silver, and others again with a higher number: gold is stale."""
    changes = {"updated_at": f"{LATER}{again:02}Z"}
    rows = [line(day, store, n, sales_value=f"{9 + n + again}.00", **changes) for day, store, n in corrections]
    world.deliver_rows("transactions", str(DAYS[-1]), f"corrections-{again}.jsonl", rows)
    with world.open() as platform:
        request = Request(frozenset([SILVER]), by_person=True)
        refresh(platform, lambda: world.spark, author(), request=request)


def request_of(platform: Platform, stores: Collection[int], days: Collection[date] = DAYS) -> Request:
    scope = scope_of(platform.catalogue[GOLD], {"store_id": [str(store) for store in stores]})
    return Request(frozenset([GOLD]), frozenset(days), by_person=True, force=True, keys=scope)


def scoped(platform: Platform, world: World, stores: Collection[int], days: Collection[date] = DAYS) -> RefreshResult:
    request = request_of(platform, stores, days)
    return refresh_stage(platform, lambda: world.spark, author(), "keys", request=request)


def published(platform: Platform, world: World) -> dict[date, str]:
    publish_stage(platform, lambda: world.spark, author(), "keys")
    return {day: record.digest for day, record in platform.ledger.current_days(GOLD).items()}
