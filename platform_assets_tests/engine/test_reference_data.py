"""Reference data: another history of a thing makes stale the days on which it says something else, and no others."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.reference_data import view_of
from platform_assets.operations.lineage.provenance import explain
from platform_assets.planning.fingerprints import View, valid_on
from platform_assets.planning.rows_aside import LateSelection
from platform_assets_tests.support.history import DAILY, person
from platform_assets_tests.support.world import MakeWorld, World, product, sale

TABLE = "silver.products"


DAYS = [f"2017-01-{day:02}" for day in range(1, 9)]


def load(make_world: MakeWorld) -> World:
    """Eight days of sales of a product that was meat, is deli from the fourth day, and fish from the seventh."""
    world = make_world(days=len(DAYS), domains=DAILY)
    versions = [product(1, DAYS[0], "MEAT"), product(1, DAYS[3], "DELI"), product(1, DAYS[6], "FISH")]
    for version in versions:
        world.deliver_rows("products", version["effective_date"], "p.jsonl", [version])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day), sale(number, 2, day)])
    world.refresh()
    return world


def restate(world: World, effective: str, department: str, **changes: Any) -> RefreshResult:
    late = {"updated_at": f"{DAYS[-1]}T12:00:00Z"} | changes
    world.deliver_rows(
        "products", DAYS[-1], f"{effective}-{department}.jsonl", [product(1, effective, department, **late)]
    )
    return world.refresh()


def recomputed(result: RefreshResult, table: str) -> set[int]:
    return {day.day for step in result.steps if step.table == table for day in step.published}


def departments(world: World) -> list[list[str]]:
    """What each day's sales were booked to; a product without any history is unknown."""
    rows = world.rows("gold.daily_sales")
    return [sorted(row["department"] for row in rows if str(row["event_date"]) == day) for day in DAYS]


def view(world: World) -> View:
    with world.open() as platform:
        return view_of(TABLE, LakeSnapshot.now(platform))


def changed(before: View, after: View) -> set[int]:
    """Days on which something else is valid than before."""
    days = {day: day for day in calendar()}
    then, now = valid_on(before, days), valid_on(after, days)
    return {day.day for day in calendar() if then[day] != now[day]}


def calendar() -> list[date]:
    return [date.fromisoformat(day) for day in DAYS]


@pytest.mark.proof
def test_another_history_reaches_the_days_on_which_it_says_something_else(make_world: MakeWorld) -> None:
    world = load(make_world)
    before = view(world)
    assert [day.day for day in before] == [1, 4, 7]

    later = restate(world, DAYS[3], "BAKERY")
    assert recomputed(later, TABLE) == {4}
    assert recomputed(later, "gold.daily_sales") == {4, 5, 6} == changed(before, view(world))
    assert [sold[0] for sold in departments(world)] == [*["MEAT"] * 3, *["BAKERY"] * 3, *["FISH"] * 2]

    before = view(world)
    between = restate(world, DAYS[4], "DRUGS")
    assert recomputed(between, "gold.daily_sales") == {5, 6} == changed(before, view(world))
    assert [sold[0] for sold in departments(world)] == [*["MEAT"] * 3, "BAKERY", *["DRUGS"] * 2, *["FISH"] * 2]

    reached = world.digests()["gold.daily_sales"]
    world.recompute(["gold.daily_sales"], calendar())
    assert world.digests()["gold.daily_sales"] == reached, "days that nothing reached were right"


BEFORE = [
    product(1, "2010-05-01", "DRINKS", updated_at="2016-12-30T00:00:00Z"),
    product(1, "2016-12-20", "MEAT", updated_at="2016-12-29T00:00:00Z"),
    product(2, "2011-01-01", "TOYS"),
]


def with_attributes_from_before(make_world: MakeWorld, domains: str) -> World:
    world = make_world(days=len(DAYS), domains=domains)
    world.deliver_rows("products", DAYS[0], "first.jsonl", BEFORE)
    world.deliver_rows("products", DAYS[3], "p.jsonl", [product(1, DAYS[3], "DELI")])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day), sale(number, 2, day)])
    return world


def approve_all(world: World) -> None:
    days = frozenset(date.fromisoformat(row["effective_date"]) for row in BEFORE)
    with world.open() as platform:
        approve(platform, lambda: world.spark, LateSelection(table="raw.products", days=days), person())


MEAT_THEN_DELI = [*["MEAT"] * 3, *["DELI"] * 5]


@pytest.mark.proof
def test_what_was_valid_when_the_calendar_begins_holds_from_its_first_day(make_world: MakeWorld) -> None:
    """Two refreshes, with an approval between them."""
    world = with_attributes_from_before(make_world, DAILY)
    world.refresh()
    assert departments(world) == [[one, "UNKNOWN"] for one in MEAT_THEN_DELI]

    approve_all(world)
    taken = world.refresh()
    assert (recomputed(taken, TABLE), recomputed(taken, "gold.daily_sales")) == ({1}, {*range(1, 9)})
    assert departments(world) == [[one, "TOYS"] for one in MEAT_THEN_DELI], "what was replaced in 2016 changes nothing"
    assert {row["effective_date"].year for row in world.rows(TABLE, DAYS[0])} == {2011, 2016}

    with world.open() as platform:
        origin = explain(platform, platform.catalogue[TABLE], calendar()[0]).origin
    assert origin is not None
    assert [str(day) for day in origin.inputs[0].days] == ["2010-05-01", "2011-01-01", "2016-12-20", DAYS[0]]


@pytest.mark.proof
def test_a_correction_from_before_the_calendar_reaches_its_days_whatever_was_taken_first(make_world: MakeWorld) -> None:
    world = with_attributes_from_before(make_world, DAILY)
    world.refresh()
    approve_all(world)
    world.refresh()
    restated = restate(world, "2016-12-20", "FISH")
    assert recomputed(restated, "gold.daily_sales") == {1, 2, 3}
    corrected = world.digests()
    other = with_attributes_from_before(make_world, DAILY)
    restate(other, "2016-12-20", "FISH")
    approve_all(other)
    other.refresh()
    again = other.digests()
    assert {name: again[name] for name in (TABLE, "gold.daily_sales")} == {
        name: corrected[name] for name in (TABLE, "gold.daily_sales")
    }, "whatever was taken first"

    with world.open() as platform:
        withdraw(platform, lambda: world.spark, [f"products/{DAYS[-1]}/2016-12-20-FISH.jsonl"], person())
    assert recomputed(world.refresh(), "gold.daily_sales") == {1, 2, 3}
    assert departments(world) == [[one, "TOYS"] for one in MEAT_THEN_DELI]
