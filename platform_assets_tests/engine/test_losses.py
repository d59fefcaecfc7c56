"""Every row delivered is somewhere, and only once."""

from __future__ import annotations

from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.world import MakeWorld, World, sale

DAY = "2017-01-01"
LATER = f"{DAY}T12:00:00Z"
SAME_INSTANT = f"{DAY}T10:05:00Z"


def figures(world: World, table: str = "silver.transactions") -> dict[str, int]:
    """Of the first day."""
    with world.open() as platform:
        return next(iter(platform.ledger.current_days(table).values())).figures


def test_raw_is_silver_superseded_voided_and_quarantined_through_every_correction(make_world: MakeWorld) -> None:
    """Every kind of correction, delivered in turn."""
    world = make_world(days=1, domains=TILLS)
    rows = [
        sale(1, 1, DAY),
        sale(1, 1, DAY),
        sale(2, 1, DAY),
        sale(2, 1, DAY, updated_at=LATER, sales_value="3.00"),
        sale(3, 1, DAY),
        sale(3, 1, DAY, updated_at=LATER, voided=True),
        sale(4, 1, DAY, quantity=-1),
        sale(5, 1, DAY, sales_value=None),
        # A void and a record of one instant: the row hash decides, the same way in both counts.
        sale(6, 1, DAY, updated_at=SAME_INSTANT),
        sale(6, 1, DAY, updated_at=SAME_INSTANT, voided=True),
        sale(7, 1, DAY, updated_at=SAME_INSTANT, sales_value="8.00"),
        sale(7, 1, DAY, updated_at=SAME_INSTANT, voided=True, sales_value="8.00"),
    ]
    world.deliver_rows("transactions", DAY, "a.jsonl", rows)
    result = world.refresh()
    [arrival] = result.ingests[0].arrivals
    assert (arrival.landed, arrival.taken, arrival.refused) == (12, 12, 0)
    found = figures(world)
    left = len(world.rows("silver.transactions"))
    assert found["raw"] == 12 == left + found["superseded"] + found["voided"] + found["quarantined"]
    assert found["quarantined"] == 2
    assert {row["basket_id"] for row in world.rows("silver.transactions")} >= {1, 2}
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.transactions"))
    assert reasons == ["quantity_in_range", "sales_value_in_range"]

    # A broken correction leaves the older good version; a good one of a broken row enters.
    corrections = [sale(1, 1, DAY, updated_at=LATER, store_id=0), sale(4, 1, DAY, updated_at=LATER)]
    world.deliver_rows("transactions", DAY, "b.jsonl", corrections)
    world.refresh()
    by_basket = {row["basket_id"]: row for row in world.rows("silver.transactions")}
    assert by_basket[1]["store_id"] == 7
    assert by_basket[4]["quantity"] == 1
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.transactions"))
    assert reasons == ["quantity_in_range", "sales_value_in_range", "store_known"]

    before = world.digests()
    again = world.refresh()
    assert not again.steps
    assert not any(ingest.arrivals or ingest.published for ingest in again.ingests)
    assert world.digests() == before
