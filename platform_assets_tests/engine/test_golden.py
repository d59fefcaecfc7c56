"""What the engine makes of fixed input stays what it is, to the digest.

If this fails on purpose, because the engine now makes other rows of the same input, raise `ENGINE_SEMANTICS` and
replace the digests: every installation then knows that its tables are stale.
"""

from __future__ import annotations

from platform_assets.planning.code_version import ENGINE_SEMANTICS
from platform_assets_tests.support.world import MakeWorld, product, sale

GOLDEN = {
    1: {
        "silver.transactions": [
            "1-52e48e4-64425578-61711bf3-c0341e89",
            "2-e2852676-d078acbc-a567c69c-1afd1239",
        ],
        "silver.products": [
            "1-cae6fcd6-ed37a042-4b93305b-b8aab1ad",
            "1-7b3fe21c-13955066-d3380489-2614e738",
        ],
        "gold.daily_sales": [
            "1-a8257e04-325e26cb-bdec1074-2ff3090e",
            "1-59c36524-600252da-7f0e4757-8aa4087c",
        ],
        "gold.household_28d": [
            "1-48239e56-8aed98dc-d566b210-68cda087",
            "1-e0d54523-3d3d9718-a5e4198f-bd53c28c",
        ],
        "gold.sales_month_to_date": [
            "1-a8257e04-325e26cb-bdec1074-2ff3090e",
            "2-101e8e328-926079a5-13cfa57cb-ba97118a",
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
