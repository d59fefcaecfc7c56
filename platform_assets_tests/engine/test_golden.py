"""What the engine makes of fixed input stays what it is, to the digest.

If this fails on purpose, because the engine now makes other rows of the same input, raise `ENGINE_SEMANTICS` and
replace the digests: every installation then knows that its tables are stale.
"""

from __future__ import annotations

from platform_assets.records.code_version import ENGINE_SEMANTICS
from platform_assets_tests.support.world import MakeWorld, product, sale

GOLDEN = {
    1: {
        "silver.transactions": [
            "1-ff9a7d86-cca48e28-90dad2b-a019e2f7",
            "2-1cee0b277-f1fffcda-4af1117f-f17fb878",
        ],
        "silver.products": [
            "1-ecafe40a-d1169b1c-c3b464ca-b8cc35a7",
            "1-d7492e2b-c2433935-8390f11d-98d0add8",
        ],
        "gold.daily_sales": [
            "1-1cd81e20-ba73270d-615884e4-2c46c56a",
            "1-5006096d-7dfab843-60dae715-26696392",
        ],
        "gold.household_28d": [
            "1-8d2855f9-e5c4c4a8-c4350ccd-5c6a827a",
            "1-13c4daa3-f3b798d9-c9c42407-30fafe36",
        ],
        "gold.sales_month_to_date": [
            "1-1cd81e20-ba73270d-615884e4-2c46c56a",
            "2-6cde278d-1386ddf50-c2336bf9-52b028fc",
        ],
    }
}


def test_fixed_input_keeps_its_digests(make_world: MakeWorld) -> None:
    """The one test that computes all seven tables of retail from files of its own."""
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
