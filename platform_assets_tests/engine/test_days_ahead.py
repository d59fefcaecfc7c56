"""Before their time no row enters and no day is taken for empty."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.engine.late.queue import WithdrawalError, late_counts, late_queue, refuse
from platform_assets.engine.pending import intakes, waiting
from platform_assets.engine.results import IngestResult
from platform_assets.planning.rows_aside import LateSelection, counts_of
from platform_assets_tests.support.history import GOODS, NEXT_DAY, TILLS, no_session, person
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, World, product, sale

FILE = "products/2017-01-03/p.jsonl"
"""Arrives on the 3rd; its contract takes rows of up to the 5th."""

Goods = list[tuple[str, str]]


def goods(world: World) -> Goods:
    """Day and department of what readers see."""
    return sorted((str(row["event_date"]), row["department"]) for row in world.rows("silver.products"))


def ingested(world: World, today: str) -> IngestResult:
    """What raw took when everything was refreshed on a day."""
    [done] = world.on(today).refresh().ingests
    return done


def queue(world: World) -> list[tuple[str, str, int]]:
    """Day, state and rows of what waits."""
    with world.open() as platform:
        waits = late_queue(platform)
        for table, counts in late_counts(platform).items():
            assert counts == counts_of([rows for rows in waits if rows.table == table])
        return [(str(rows.day), rows.state, rows.rows) for rows in waits]


def days_due(world: World, today: str) -> dict[str, tuple[date, ...]]:
    """What a refresh would find due, as the sensor and `refresh --explain` both see it."""
    with world.on(today).open() as platform:
        found = dict(waiting(platform, 100).due)
        assert {intake.table: intake.due for intake in intakes(platform) if intake.due} == found
    return found


def three_days_of_goods(lakes: Lakes) -> World:
    """Goods of the 3rd, of the 5th, and of the 6th, which is further ahead than the contract takes; on the 3rd."""
    world = lakes.new(days=3, calendar_last=None, domains=GOODS)
    rows = [product(1, "2017-01-03", "MEAT"), product(1, "2017-01-05", "FISH"), product(1, "2017-01-06", "DELI")]
    world.deliver_rows("products", "2017-01-03", "p.jsonl", rows)
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(three_days_of_goods)


@pytest.mark.proof
def test_the_same_file_gives_the_same_whenever_it_is_taken(world: World, make_world: MakeWorld) -> None:
    """Taken as it came, on a machine that then works day by day, and days later on another one."""
    assert goods(world) == [("2017-01-03", "MEAT")]
    for day, seen in ((4, 1), (5, 2), (6, 3), (7, 3)):
        world.on(f"2017-01-{day:02}").refresh()
        assert len(goods(world)) == seen
    later = make_world(days=3, calendar_last=None, domains=GOODS).on("2017-01-07")
    content = (world.settings.landing_folder / FILE).read_text()
    later.deliver("products", "2017-01-03", "p.jsonl", content)
    later.refresh()
    assert goods(later) == goods(world) == [("2017-01-03", "MEAT"), ("2017-01-05", "FISH"), ("2017-01-06", "DELI")]
    assert later.digests()["silver.products"] == world.digests()["silver.products"]
    assert not later.refresh().steps


def test_what_is_ahead_of_the_contract_waits_for_its_day_and_enters_by_itself(world: World) -> None:
    """Three refreshes: before the day, on it, and again."""
    with world.open() as platform:
        [arrival] = platform.ledger.arrivals()
        assert (arrival.landed, arrival.taken, arrival.refused, arrival.late) == (3, 2, 0, 1)
        [rows] = late_queue(platform)
    assert (rows.day, rows.state, rows.days_late) == (date(2017, 1, 6), "ahead", -3)
    assert days_due(world, "2017-01-05") == {}
    assert ingested(world, "2017-01-05").due == ()

    assert days_due(world, "2017-01-06") == {"raw.products": (date(2017, 1, 6),)}
    done = ingested(world, "2017-01-06")
    [entered] = done.due
    assert (entered.kind, entered.origin, entered.landed, entered.taken) == ("due", FILE, 1, 1)
    assert ("2017-01-06", "DELI") in goods(world)
    assert world.rows("late.products") == []
    with world.open() as platform:
        made = platform.ledger.publication(platform.ledger.arrivals()[-1].publication)
        assert made is not None
        assert (made.kind, made.why) == ("ingest", "a test")
    assert days_due(world, "2017-01-06") == {}
    assert ingested(world, "2017-01-06").due == ()


def test_a_person_keeps_out_what_came_ahead(world: World) -> None:
    with world.open() as platform:
        [refused] = refuse(platform, LateSelection(arrival=FILE), person())
    assert refused.rows == 1
    assert days_due(world, "2017-01-06") == {}
    assert ingested(world, "2017-01-06").due == ()
    assert queue(world) == [("2017-01-06", "refused", 1)]
    assert ("2017-01-06", "DELI") not in goods(world)


def line(basket: int, day: str, updated: str, **changes: Any) -> dict[str, Any]:
    return sale(basket, 1, day, updated_at=f"{updated}T12:00:00Z", **changes)


def tills(world: World) -> list[tuple[int, str]]:
    """Basket and day of every line that readers see."""
    return sorted((row["basket_id"], str(row["event_date"])) for row in world.rows("silver.transactions"))


@pytest.mark.proof
def test_days_at_either_end_of_all_years_can_be_taken_and_withdrawn(make_world: MakeWorld) -> None:
    """By approval of what waits; they lie beyond any calendar, and nothing overflows."""
    world = make_world(days=3, domains=TILLS)
    days = ("0001-01-01", "9999-12-31", "2017-01-02")
    rows = [line(basket, day, "2017-01-02") for basket, day in enumerate(days, 1)]
    world.deliver_rows("transactions", "2017-01-02", "wild.jsonl", rows)
    world.refresh()
    assert queue(world) == [("0001-01-01", "waiting", 1), ("9999-12-31", "ahead", 1)]
    path = "transactions/2017-01-02/wild.jsonl"
    with world.open() as platform:
        [done] = approve(platform, lambda: world.spark, LateSelection(arrival=path), person())
        assert set(done.published) == {date.min, date.max}
        assert platform.ledger.current_days("raw.transactions").keys() >= {date.min, date(2017, 1, 2), date.max}
    world.refresh()
    assert tills(world) == [(3, "2017-01-02")]
    with world.open() as platform:
        [gone] = withdraw(platform, lambda: world.spark, [path], person())
        assert gone.rows == 3
        with pytest.raises(WithdrawalError, match="was withdrawn before"):
            withdraw(platform, no_session, [path], person())


RAW, SILVER, DAY = "raw.transactions", "silver.transactions", "2017-01-02"


BROKEN = [sale(n, 1, DAY, quantity="many") for n in range(3)]


@pytest.mark.proof
def test_a_repaired_file_is_taken_under_its_name_and_the_rows_of_before_count_no_more(make_world: MakeWorld) -> None:
    """They stay in the table of refused rows, as what was delivered then."""
    world = make_world(days=3, domains=TILLS)
    world.deliver_rows("transactions", DAY, "t.jsonl", BROKEN)
    [taken] = world.refresh().ingests[0].arrivals
    assert (taken.taken, taken.refused) == (0, 3)
    assert taken.reason is not None
    assert taken.reason.startswith("has no row that can be taken: all 3 are refused")
    world.deliver_rows("transactions", DAY, "t.jsonl", [sale(0, 1, DAY), sale(1, 1, DAY), *BROKEN[2:]])
    [taken] = world.refresh().ingests[0].arrivals
    assert (taken.taken, taken.refused, taken.reason) == (2, 1, None)
    assert [row["basket_id"] for row in world.rows(SILVER)] == [0, 1]
    assert len(world.rows("refused.transactions")) == 4
    with world.open() as platform:
        assert platform.ledger.refused_rows() == {RAW: 1}
    assert world.refresh().ingests[0].arrivals == ()


def day(number: int) -> str:
    return f"2017-01-{number:02}"


def baskets(number: int, **changes: Any) -> list[dict[str, Any]]:
    """Ten lines of a day."""
    return [sale(100 * number + n, 1, day(number), **changes) for n in range(10)]


def rows_of_days(world: World, table: str = SILVER) -> dict[int, int]:
    """How many rows each day has that was published."""
    with world.open() as platform:
        return {found.day.day: found.rows for found in platform.ledger.current_days(table).values()}


@pytest.mark.proof
@pytest.mark.parametrize("backwards", [False, True])
def test_a_line_that_moves_to_a_day_before_its_time_is_on_one_day_at_most(
    make_world: MakeWorld, *, backwards: bool
) -> None:
    """It leaves its day at once and is seen again when the other day is published; nothing is held or blocked."""
    world = make_world(days=20, domains=NEXT_DAY)
    first, then = (3, 2) if backwards else (2, 3)
    world.deliver_rows("transactions", day(2), "t.jsonl", baskets(1))
    world.deliver_rows("transactions", day(3), "t.jsonl", [*baskets(2), sale(7, 1, day(first))])
    world.on(day(3)).refresh()
    moved = sale(7, 1, day(then), updated_at=f"{day(3)}T12:00:00Z")
    world.deliver_rows("transactions", day(3), "moved.jsonl", [moved])
    result = world.on(day(3)).refresh()
    assert not any(step.blocked or step.held for step in result.steps)
    assert rows_of_days(world) == {1: 10, 2: 11 if backwards else 10}
    world.deliver_rows("transactions", day(4), "t.jsonl", baskets(3))
    world.on(day(4)).refresh()
    assert rows_of_days(world) == {1: 10, 2: 11 if backwards else 10, 3: 10 if backwards else 11}
