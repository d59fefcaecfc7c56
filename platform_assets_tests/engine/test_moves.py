"""One key, one row: whatever day a record moves to, and in whatever order its versions arrive."""

from __future__ import annotations

from itertools import permutations

import pytest

from platform_assets_tests.world import sale

FIRST = sale(1, 1, "2017-01-02")
MOVED = sale(1, 1, "2017-01-05", updated_at="2017-01-06T00:00:00Z", sales_value="9.00")
VOID = sale(1, 1, "2017-01-05", updated_at="2017-01-07T00:00:00Z", voided=True)
BACK = sale(1, 1, "2017-01-02", updated_at="2017-01-08T00:00:00Z", sales_value="4.00")


@pytest.fixture
def world(make_world):
    world = make_world(days=8)
    for day in range(1, 9):
        world.deliver("transactions", f"2017-01-0{day}", "empty.jsonl", "")
    return world


def land_in_turn(world, versions):
    for n, row in enumerate(versions):
        world.deliver_rows("transactions", "2017-01-08", f"{n}.jsonl", [row])
        world.refresh()


@pytest.mark.parametrize("order", list(permutations([FIRST, MOVED])))
def test_a_correction_that_moves_a_sale_to_another_day_leaves_one_sale(world, order):
    land_in_turn(world, order)
    rows = world.rows("silver.transactions")
    assert [(str(row["event_date"]), str(row["sales_value"])) for row in rows] == [("2017-01-05", "9.00")]


@pytest.mark.parametrize("order", list(permutations([FIRST, MOVED, VOID])))
def test_a_void_removes_a_sale_whatever_day_it_names(world, order):
    land_in_turn(world, order)
    assert world.rows("silver.transactions") == []


def test_a_sale_that_moves_there_and_back_ends_where_it_began(world):
    land_in_turn(world, [MOVED, FIRST, BACK])
    rows = world.rows("silver.transactions")
    assert [(str(row["event_date"]), str(row["sales_value"])) for row in rows] == [("2017-01-02", "4.00")]


def test_versions_in_one_delivery_settle_as_versions_one_by_one(world, make_world):
    land_in_turn(world, [FIRST, MOVED, BACK])
    together = make_world(days=8)
    for day in range(1, 9):
        together.deliver("transactions", f"2017-01-0{day}", "empty.jsonl", "")
    together.deliver_rows("transactions", "2017-01-08", "all.jsonl", [BACK, FIRST, MOVED, FIRST])
    together.refresh()
    for layer in ("silver.transactions", "gold.daily_sales", "gold.household_28d", "gold.sales_month_to_date"):
        assert together.digests()[layer] == world.digests()[layer]
