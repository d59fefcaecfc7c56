"""Every row delivered is somewhere, and only once."""

from __future__ import annotations

from platform_assets_tests.world import sale


def figures(world, table="silver.transactions"):
    with world.open() as platform:
        return {day: found.figures for day, found in platform.ledger.current_days(table).items()}


def test_raw_is_silver_superseded_voided_and_quarantined(make_world):
    world = make_world(days=2)
    rows = [
        sale(1, 1, "2017-01-01"),
        sale(1, 1, "2017-01-01"),
        sale(2, 1, "2017-01-01"),
        sale(2, 1, "2017-01-01", updated_at="2017-01-01T12:00:00Z", sales_value="3.00"),
        sale(3, 1, "2017-01-01"),
        sale(3, 1, "2017-01-01", updated_at="2017-01-01T12:00:00Z", voided=True),
        sale(4, 1, "2017-01-01", quantity=-1),
        sale(5, 1, "2017-01-01", sales_value=None),
    ]
    world.deliver_rows("transactions", "2017-01-01", "a.jsonl", rows)
    world.deliver("transactions", "2017-01-02", "empty.jsonl", "")
    result = world.refresh()
    [arrival] = [a for a in result.ingests[0].arrivals if a.path.endswith("a.jsonl")]
    assert (arrival.landed, arrival.taken, arrival.refused) == (8, 8, 0)
    first = min(figures(world))
    assert figures(world)[first] == {"raw": 8, "superseded": 3, "voided": 1, "quarantined": 2}
    assert [str(row["sales_value"]) for row in world.rows("silver.transactions")] == ["2.50", "3.00"]
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.transactions"))
    assert reasons == ["quantity_in_range", "sales_value_in_range"]


def test_a_broken_correction_leaves_the_older_good_version(make_world):
    world = make_world(days=1)
    world.deliver_rows("transactions", "2017-01-01", "a.jsonl", [sale(1, 1, "2017-01-01")])
    world.refresh()
    bad = sale(1, 1, "2017-01-01", updated_at="2017-01-01T13:00:00Z", store_id=0)
    world.deliver_rows("transactions", "2017-01-01", "b.jsonl", [bad])
    world.refresh()
    assert [row["store_id"] for row in world.rows("silver.transactions")] == [7]
    assert [row["_reason"] for row in world.rows("quarantine.transactions")] == ["store_known"]


def test_a_mended_row_leaves_quarantine_only_by_its_new_version(make_world):
    world = make_world(days=1)
    world.deliver_rows("transactions", "2017-01-01", "a.jsonl", [sale(1, 1, "2017-01-01", week=77)])
    world.refresh()
    assert world.rows("silver.transactions") == []
    mended = sale(1, 1, "2017-01-01", updated_at="2017-01-01T13:00:00Z")
    world.deliver_rows("transactions", "2017-01-01", "b.jsonl", [mended])
    world.refresh()
    assert len(world.rows("silver.transactions")) == 1
    assert len(world.rows("quarantine.transactions")) == 1


def test_a_second_refresh_does_nothing(make_world):
    world = make_world(days=1)
    world.deliver_rows("transactions", "2017-01-01", "a.jsonl", [sale(1, 1, "2017-01-01")])
    world.refresh()
    before = world.digests()
    again = world.refresh()
    assert not again.steps
    assert not any(ingest.arrivals or ingest.published for ingest in again.ingests)
    assert world.digests() == before
