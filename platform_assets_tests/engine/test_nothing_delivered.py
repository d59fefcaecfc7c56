"""No day is loaded by an arrival without one good row, none taken for empty before its source has had its time."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from platform_assets.engine.pending import waiting
from platform_assets_tests.support.history import NEXT_DAY, TILLS
from platform_assets_tests.support.world import MakeWorld, Rows, World, sale

RAW, SILVER, DAY = "raw.transactions", "silver.transactions", "2017-01-02"


BROKEN = [sale(n, 1, DAY, quantity="many") for n in range(3)]


def test_a_file_loads_its_day_if_a_row_of_it_was_taken_or_it_has_none(make_world: MakeWorld) -> None:
    """A day for each kind of file."""
    world = make_world(days=5, domains=TILLS)
    one, two, three, four = (f"2017-01-0{number}" for number in range(1, 5))
    delivered: dict[str, Rows] = {
        one: [sale(n, 1, one, quantity="many") for n in range(3)],  # each row refused
        two: [*BROKEN, sale(9, 1, two)],
        three: [sale(n, 1, "2016-01-01", updated_at=f"{three}T10:00:00Z") for n in range(3)],  # each row late
        four: [],
    }
    for day, rows in delivered.items():
        world.deliver_rows("transactions", day, "t.jsonl", rows)
    world.refresh()
    loaded = {date.fromisoformat(day) for day in (two, three, four)}
    assert world.digests()[RAW].keys() == world.digests()[SILVER].keys() == loaded
    with world.open() as platform:
        assert waiting(platform, 100).missing[RAW] == (date.fromisoformat(one),)


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


def test_a_day_is_published_with_the_arrival_of_the_next_and_neither_empty_nor_missing_before(
    make_world: MakeWorld,
) -> None:
    """Three days, a refresh on each; one file brings the rows of the day before, of which the second had none."""
    world = make_world(days=20, domains=NEXT_DAY)
    rows = {1: 10, 2: 0}
    for today in range(1, 4):
        brought = baskets(today - 1) if rows.get(today - 1) else []
        world.deliver_rows("transactions", day(today), "t.jsonl", brought)
        world.on(day(today)).refresh()
        assert rows_of_days(world) == {number: count for number, count in rows.items() if number < today}
        with world.on(day(today)).open() as platform:
            assert platform.ledger.holds() == ()
            assert waiting(platform, 100).missing == {}
    for today, missing in ((4, ()), (5, (date(2017, 1, 3),)), (6, (date(2017, 1, 3), date(2017, 1, 4)))):
        with world.on(day(today)).open() as platform:
            assert waiting(platform, 100).missing.get("raw.transactions", ()) == missing


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
