"""What a person accepts is what was looked at: everything that was found on it, and nothing that came since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from platform_assets.domains.retail.transforms import gold
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.results import StepResult
from platform_assets.engine.step.recompute import recompute_step
from platform_assets.operations.acceptance import acceptance
from platform_assets_tests.engine.test_gates import day, deliver, holds, lines, sixteen_days
from platform_assets_tests.engine.test_holding import ODD, RAW, SILVER, a_day_without_rows
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.world import World

GOLD = "gold.daily_sales"


def accept(world: World, table: str, number: int, meanwhile: Callable[[], object] = lambda: None) -> StepResult:
    """As the command does it; others do something once the days were looked at, while Spark starts."""
    with world.open() as platform:
        found = acceptance(platform, table, [day(number)])
        meanwhile()
        author = Author("person", "the shop was closed")
        return recompute_step(
            platform, lambda: world.spark, found.step, author, accept=found.checks, looked_at=found.made_from
        )


@pytest.mark.proof
def test_rows_that_came_since_a_day_was_looked_at_are_not_accepted(prepared: Prepared) -> None:
    """Days that volume can compare with are loaded first."""
    world = prepared(a_day_without_rows)
    world.refresh()
    assert holds(world, SILVER) == {ODD.day: "volume"}

    def sales_come_and_are_taken_back() -> None:
        """As empty as before, through other rows, at which nobody has looked."""
        deliver(world, ODD.day, lines(ODD.day, voided=True), "b.jsonl")
        with world.open() as platform:
            ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("ingest", "a test"))

    done = accept(world, SILVER, ODD.day, sales_come_and_are_taken_back)
    assert [finding.check for finding in done.held[ODD]] == ["volume"]
    assert ODD not in world.digests()[SILVER]
    assert set(accept(world, SILVER, ODD.day).published) == {ODD}


@pytest.mark.proof
def test_a_day_on_which_two_gates_find_something_is_accepted_once_both_were_looked_at(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days that volume can compare with are loaded first, in four tables."""
    world = prepared(sixteen_days)

    def sums_nothing(transactions: DataFrame, products: Any) -> DataFrame:
        return right(transactions, products).where("false")

    right = gold.daily_sales
    deliver(world, 17, lines(17))
    monkeypatch.setattr(gold, "daily_sales", sums_nothing)
    world.refresh()
    assert holds(world, GOLD)[17] == "reconciliation"
    [finding] = accept(world, GOLD, 17).held[day(17)]
    assert finding.check == "volume"
    assert set(accept(world, GOLD, 17).published) == {day(17)}
    assert 17 not in holds(world, GOLD)
