"""A column more in reference data says nothing else about the days on which no row has it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Catalogue, Column
from platform_assets.domains.retail.contracts import SILVER_PRODUCTS
from platform_assets.domains.retail.transforms import silver
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.state.reference_data import view_of
from platform_assets.planning.fingerprints import valid_on
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.world import MakeWorld, product, sale

DAYS = [f"2017-01-{day:02}" for day in range(1, 9)]
ALL = [date.fromisoformat(day) for day in DAYS]
WIDER = replace(SILVER_PRODUCTS, columns=(*SILVER_PRODUCTS.columns, Column("note", "string", "Nobody has one yet.")))


@pytest.mark.proof
def test_an_added_column_reaches_no_day_before_the_one_that_was_computed_with_it(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(days=len(DAYS), domains=DAILY)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    world.deliver_rows("products", DAYS[5], "p.jsonl", [product(2, DAYS[5], "DELI")])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day)])
    world.refresh()

    before = silver.products

    def products(products: DataFrame) -> DataFrame:
        return before(products).withColumn("note", F.lit(None).cast("string"))

    monkeypatch.setattr(silver, "products", products)
    with world.open() as opened:
        then = view_of("silver.products", LakeSnapshot.now(opened))
        [domain] = opened.catalogue.domains
        tables = tuple(WIDER if one.name == WIDER.name else one for one in domain.tables)
        platform = replace(opened, catalogue=Catalogue.of([replace(domain, tables=tables)]))
        author = Author("test", "a test")
        # Some days are enough for a column that may be null; the days before keep their content and digests.
        recompute(platform, lambda: world.spark, ("silver.products",), (ALL[5],), author)
        now = view_of("silver.products", LakeSnapshot.now(platform))
        stale = {step.table: step.days for step in plan_steps(platform).steps}

    days = {day: day for day in ALL[:5]}
    assert valid_on(then, days) == valid_on(now, days)
    assert set(stale.get("gold.daily_sales", ())) <= set(ALL[5:]), "recomputed by itself, by a sensor or the daily run"
