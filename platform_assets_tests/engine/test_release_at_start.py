"""A step reads the release that is current at its start, whatever is published while it works."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute
from platform_assets.lakehouse.releases import current_release
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.world import MakeWorld, sale

DAY = date(2017, 1, 1)
RAW, SILVER, AUTHOR = "raw.transactions", "silver.transactions", Author("test", "a test")


@pytest.mark.proof
def test_a_correction_that_comes_during_a_step_is_not_read_and_makes_the_day_stale(make_world: MakeWorld) -> None:
    """Two ingests, a recomputation and a refresh."""
    world = make_world(days=1, domains=TILLS)
    world.deliver_rows("transactions", str(DAY), "t.jsonl", [sale(n, 1, str(DAY)) for n in range(3)])
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], AUTHOR)
        at_start = current_release(platform.lake)

        def session() -> SparkSession:
            """Started by the step once it has its release: a good moment for others to publish."""
            if current_release(platform.lake) == at_start:
                later = sale(0, 1, str(DAY), sales_value="99.00", updated_at=f"{DAY}T12:00:00Z")
                world.deliver_rows("transactions", str(DAY), "later.jsonl", [later])
                with world.open() as other:
                    ingest(other, lambda: world.spark, other.catalogue[RAW], AUTHOR)
            return world.spark

        recompute(platform, session, (SILVER,), (DAY,), AUTHOR)
        assert current_release(platform.lake).versions[RAW] == at_start.versions[RAW] + 1, "it did come meanwhile"
        assert platform.ledger.current_days(SILVER)[DAY].reads == {RAW: at_start.versions[RAW]}
    assert {str(row["sales_value"]) for row in world.rows(SILVER)} == {"2.50"}
    world.refresh()
    assert {str(row["sales_value"]) for row in world.rows(SILVER)} == {"2.50", "99.00"}
