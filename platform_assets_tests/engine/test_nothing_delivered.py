"""An arrival without one good row has delivered nothing: no day is loaded by it, and its repaired file is taken."""

from __future__ import annotations

from datetime import date

from platform_assets.engine.pending import waiting
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.world import MakeWorld, Rows, sale

RAW, SILVER, DAY = "raw.transactions", "silver.transactions", "2017-01-02"
BROKEN = [sale(n, 1, DAY, quantity="many") for n in range(3)]


def test_a_file_loads_its_day_if_a_row_of_it_was_taken_or_it_has_none(make_world: MakeWorld) -> None:
    """A day for each kind of file, and a second refresh."""
    world = make_world(days=5, domains=DAILY)
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
    world.refresh()
    loaded = {date.fromisoformat(day) for day in (two, three, four)}
    assert world.digests()[RAW].keys() == world.digests()[SILVER].keys() == loaded
    with world.open() as platform:
        assert waiting(platform, 100).missing[RAW] == (date.fromisoformat(one),)


def test_a_repaired_file_is_taken_under_its_name_and_the_rows_of_before_count_no_more(make_world: MakeWorld) -> None:
    """They stay in the table of refused rows, as what was delivered then."""
    world = make_world(days=3, domains=DAILY)
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
