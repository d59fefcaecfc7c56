"""One key, one row: whatever day a record moves to, and in whatever order its versions arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import permutations
from typing import Any

import pytest

from platform_assets.engine import arrivals, ingest
from platform_assets.lakehouse.errors import LockLostError
from platform_assets_tests.support.history import RETAIL, TILLS, WINDOWS
from platform_assets_tests.support.world import MakeWorld, World, sale

FIRST = {"day": "2017-01-02"}
MOVED = {"day": "2017-01-05", "updated_at": "2017-01-06T00:00:00Z", "sales_value": "9.00"}
VOID = {"day": "2017-01-05", "updated_at": "2017-01-07T00:00:00Z", "voided": True}
BACK = {"day": "2017-01-02", "updated_at": "2017-01-08T00:00:00Z", "sales_value": "4.00"}
Version = dict[str, Any]


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return eight_days(make_world, TILLS)


def eight_days(make_world: MakeWorld, domain: str) -> World:
    """Eight days on which a file without rows was delivered."""
    world = make_world(days=8, domains=domain)
    for day in range(1, 9):
        world.deliver("transactions", f"2017-01-0{day}", "empty.jsonl", "")
    return world


def line(basket: int, version: Version) -> dict[str, Any]:
    return sale(basket, 1, **version)


def land_in_turn(world: World, orders: Sequence[Sequence[Version]], arrival: str = "2017-01-08") -> None:
    """The versions of basket n in the n-th order; in every round one version of each basket, then a refresh."""
    for turn, versions in enumerate(zip(*orders, strict=True)):
        rows = [line(basket, version) for basket, version in enumerate(versions)]
        world.deliver_rows("transactions", arrival, f"turn-{turn}.jsonl", rows)
        world.refresh()


def kept(world: World) -> list[tuple[int, str, str]]:
    rows = world.rows("silver.transactions")
    return sorted((row["basket_id"], str(row["event_date"]), str(row["sales_value"])) for row in rows)


def test_a_correction_that_moves_a_sale_to_another_day_leaves_one_sale(world: World) -> None:
    """Two refreshes, one for each turn of the deliveries."""
    orders = list(permutations([FIRST, MOVED]))
    land_in_turn(world, orders)
    assert kept(world) == [(basket, "2017-01-05", "9.00") for basket in range(len(orders))]


def test_a_void_removes_a_sale_whatever_day_it_names_and_whenever_it_arrives(world: World) -> None:
    """Three refreshes, one for each turn of the deliveries."""
    land_in_turn(world, list(permutations([FIRST, MOVED, VOID])))
    assert kept(world) == []


@pytest.mark.parametrize("way", [tuple, reversed])
def test_a_sale_moves_as_many_days_as_its_contract_says_and_no_more(
    make_world: MakeWorld, way: Callable[[Sequence[Version]], Iterable[Version]]
) -> None:
    """Each round arrives on one side only, which has to find the other one."""
    world = make_world(days=63, domains=TILLS)
    later = {"updated_at": "2017-03-05T00:00:00Z", "sales_value": "9.00"}
    after_sixty, after_sixty_one = {"day": "2017-03-03", **later}, {"day": "2017-03-04", **later}
    land_in_turn(world, [tuple(way((FIRST, after))) for after in (after_sixty, after_sixty_one)], "2017-03-04")
    assert kept(world) == [(0, "2017-03-03", "9.00"), (1, "2017-01-02", "2.50"), (1, "2017-03-04", "9.00")]


@pytest.mark.proof
@pytest.mark.parametrize("domain", [WINDOWS, RETAIL])
def test_a_sale_that_moves_there_and_back_ends_where_it_began(make_world: MakeWorld, domain: str) -> None:
    one_by_one = eight_days(make_world, domain)
    orders = list(permutations([FIRST, MOVED, BACK]))
    land_in_turn(one_by_one, orders)
    assert kept(one_by_one) == [(basket, "2017-01-02", "4.00") for basket in range(len(orders))]

    together = eight_days(make_world, domain)
    rows = [line(basket, version) for basket in range(len(orders)) for version in (BACK, FIRST, MOVED, FIRST)]
    together.deliver_rows("transactions", "2017-01-08", "all.jsonl", rows)
    together.refresh()
    in_turn, at_once = one_by_one.digests(), together.digests()
    for table in in_turn.keys() - {"raw.transactions"}:
        assert at_once[table] == in_turn[table]


def test_two_who_ingest_at_once_leave_one_sale_of_each_key(world: World) -> None:
    world.refresh()
    lines = [line(basket, version) for basket, version in enumerate((FIRST, MOVED))]
    moved = [line(basket, version) for basket, version in enumerate((MOVED, FIRST))]
    world.deliver_rows("transactions", "2017-01-07", "one.jsonl", lines)
    world.deliver_rows("transactions", "2017-01-08", "other.jsonl", moved)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: world.refresh(), range(2)))
    taken = [arrival.path for result in results for ingest in result.ingests for arrival in ingest.arrivals]
    assert sorted(taken) == ["transactions/2017-01-07/one.jsonl", "transactions/2017-01-08/other.jsonl"]
    world.refresh()
    assert kept(world) == [(0, "2017-01-05", "9.00"), (1, "2017-01-05", "9.00")]


def test_who_lost_the_lock_of_an_ingest_takes_nothing_and_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes, one of them in the midst of another."""
    one = world.deliver_rows("transactions", "2017-01-07", "one.jsonl", [line(0, FIRST)])
    to_come = ["ingest.counted"]

    def meanwhile(point: str) -> None:
        if point in to_come:
            to_come.clear()
            hidden = one.rename(one.with_name(".one.jsonl"))  # so that no day is published by both
            world.deliver_rows("transactions", "2017-01-08", "other.jsonl", [line(0, MOVED)])
            world.refresh()
            hidden.rename(one)

    monkeypatch.setattr(arrivals, "failpoint", meanwhile)
    monkeypatch.setattr(ingest, "ingest_lock", lambda *_: nullcontext())
    with pytest.raises(LockLostError, match=r"made version \d of raw\.transactions"):
        world.refresh()
    assert kept(world) == [(0, "2017-01-05", "9.00")]
    world.refresh()
    assert kept(world) == [(0, "2017-01-05", "9.00")]
