"""What the engine makes of fixed input stays what it is, to the digest.

If this fails on purpose, because the engine now makes other rows of the same input, raise `ENGINE_SEMANTICS` and
replace the digests: every installation then knows that its tables are stale.
"""

from __future__ import annotations

from platform_assets.planning.code_version import ENGINE_SEMANTICS
from platform_assets_tests.world import MakeWorld, product, sale

GOLDEN = {
    1: {
        "silver.transactions": ["", ""],
        "silver.products": ["", ""],
        "gold.daily_sales": ["", ""],
        "gold.household_28d": ["", ""],
        "gold.sales_month_to_date": ["", ""],
    }
}


def test_fixed_input_keeps_its_digests(make_world: MakeWorld) -> None:
    world = make_world(days=2)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT")])
    world.deliver_rows("products", "2017-01-02", "p.jsonl", [product(1, "2017-01-02", "DELI", brand=None)])
    first = [sale(1, 1, "2017-01-01"), sale(1, 2, "2017-01-01", coupon_disc="0.75"), sale(2, 1, "2017-01-01")]
    second = [
        sale(3, 1, "2017-01-02"),
        sale(2, 1, "2017-01-02", updated_at="2017-01-02T11:00:00Z"),
        sale(1, 2, "2017-01-01", updated_at="2017-01-02T11:00:00Z", voided=True),
        sale(4, 1, "2017-01-02", week=99),
    ]
    world.deliver_rows("transactions", "2017-01-01", "t.jsonl", first)
    world.deliver_rows("transactions", "2017-01-02", "t.jsonl", second)
    world.refresh()
    digests = world.digests()
    found = {table: [digests[table][day] for day in sorted(digests[table])] for table in GOLDEN[ENGINE_SEMANTICS]}
    assert found == GOLDEN[ENGINE_SEMANTICS]
