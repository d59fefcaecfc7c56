"""What is read as of the day of a row that lies in a window: a correction of it reaches the days made from the row."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Domain, Input, as_of, span
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)
from platform_assets.domains.retail.transforms import gold
from platform_assets.spark.windows import History, Windowed
from platform_assets_tests.support.world import MakeWorld, product, sale

DAYS = [f"2017-01-{day:02}" for day in range(1, 9)]
TRAILING = replace(
    DAILY_SALES,
    columns=tuple(DAILY_SALES.column(name) for name in ("store_id", "department", "lines")),
    inputs=(Input("silver.transactions", span(2)), Input("silver.products", as_of())),
    reconciles=(),
)
DOMAIN = Domain(
    "trailing",
    (RAW_TRANSACTIONS, RAW_PRODUCTS, SILVER_TRANSACTIONS, SILVER_PRODUCTS, TRAILING),
    "platform_assets.domains.retail.transforms",
)


def trailing(transactions: Windowed, products: History) -> DataFrame:
    """Lines of three days by the department that the product had when it was sold."""
    lines = products.as_of_join(transactions.frame)
    department = F.coalesce("department", F.lit("UNKNOWN")).alias("department")
    daily = lines.groupBy("event_date", "store_id", department).agg(F.count(F.lit(1)).alias("lines"))
    spread = transactions.per_day(daily).groupBy("event_date", "store_id", "department")
    return spread.agg(F.sum("lines").alias("lines"))


@pytest.mark.proof
def test_a_correction_reaches_the_days_that_read_it_as_of_an_earlier_day(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gold, "daily_sales", trailing)
    world = make_world(days=len(DAYS), domains=__name__)
    for effective, department in ((DAYS[0], "MEAT"), (DAYS[3], "DELI")):
        world.deliver_rows("products", effective, "p.jsonl", [product(1, effective, department)])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day)])
    world.refresh()

    # The product was bakery, not meat, until it became deli on the fourth day.
    late = product(1, DAYS[0], "BAKERY", updated_at=f"{DAYS[-1]}T12:00:00Z")
    world.deliver_rows("products", DAYS[-1], "late.jsonl", [late])
    world.refresh()

    reached = world.digests()["gold.daily_sales"]
    shown = {str(row["event_date"]): row["department"] for row in world.rows("gold.daily_sales", DAYS[4])}
    world.recompute(["gold.daily_sales"], [date.fromisoformat(day) for day in DAYS])
    right = world.digests()["gold.daily_sales"]
    wrong = [str(day) for day in right if right[day] != reached[day]]
    assert not wrong, f"days that nothing had reached come out otherwise: {wrong}; one of them showed {shown}"
