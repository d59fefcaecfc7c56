"""What several modules begin with, each made once in a run."""

from __future__ import annotations

from platform_assets_tests.support.history import DAILY, History, Version, history
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, product, sale

DAYS = [f"2017-01-{day:02}" for day in range(1, 5)]
LATER, LATEST = f"{DAYS[-1]}T12:00:00Z", f"{DAYS[-1]}T13:00:00Z"
"""When corrections of any of the four days were written."""


def four_days(lakes: Lakes, domain: str = DAILY) -> World:
    """Four days of five sales each, loaded."""
    world = lakes.new(days=len(DAYS), domains=domain)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(10 * number + n, 1, day) for n in range(5)])
    world.refresh()
    return world


def correct(world: World, day: str, name: str, updated_at: str = LATER, value: str = "99.00") -> None:
    """Another value for the first sale of one of the four days, delivered."""
    row = sale(10 * DAYS.index(day), 1, day, updated_at=updated_at, sales_value=value)
    world.deliver_rows("transactions", DAYS[-1], f"{name}.jsonl", [row])


def two_lines_a_day(lakes: Lakes) -> History:
    """Two till lines a day from the 2nd to the 6th, loaded."""
    found = history(lakes.new)
    for day in range(2, 7):
        found.deliver(f"2017-01-{day:02}", "sold.jsonl", Version(day, day, 0), Version(10 + day, day, 0))
    found.refresh()
    return found
