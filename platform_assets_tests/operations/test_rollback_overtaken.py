"""A run that was just publishing a day does not undo a rollback of it: the files it found are there again, and yet."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.engine.step import compute as computing
from platform_assets.engine.step.recompute import recompute_step
from platform_assets.errors import PlatformError
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.planning.steps import Step
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.history import DAILY, TILLS, person
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.world import MakeWorld, product, sale

RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"
DAYS = ("2017-01-01", "2017-01-02")
DAY = date(2017, 1, 1)


def wrong() -> dict[str, object]:
    """A correction of the first day's sale that somebody finds to be wrong."""
    return sale(0, 1, DAYS[0], updated_at=f"{DAYS[1]}T12:00:00Z", sales_value="99.00")


@pytest.mark.proof
def test_who_computed_the_same_before_it_was_rolled_back_does_not_publish_it_after(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an asset run computes a day, a refresh publishes just that, and a person puts it back."""
    world = make_world(days=2, domains=TILLS)
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day)])
    world.refresh()
    before = world.digests()[SILVER]
    world.deliver_rows("transactions", DAYS[1], "wrong.jsonl", [wrong()])
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("ingest", "a test"))

    def published_and_put_back() -> None:
        with world.open() as other:
            refresh(other, lambda: world.spark, Author("theirs", "a tick"))
            assert world.digests()[SILVER] != before
            rollback(other, chosen_publications(other, run="theirs"), person("it was wrong"))
        assert world.digests()[SILVER] == before

    once_at(monkeypatch, computing, "gate.decided", published_and_put_back)
    with world.open() as platform, suppress(PlatformError):
        recompute_step(platform, lambda: world.spark, Step(SILVER, (DAY,)), Author("slow", "an asset run"))
    with world.open() as platform:
        held = {(hold.table, hold.day) for hold in platform.ledger.holds() if hold.gate == ROLL_BACK}
    assert world.digests()[SILVER] == before, "a run that was just publishing the day undid the rollback"
    assert held == {(SILVER, DAY)}


@pytest.mark.proof
def test_so_it_is_with_a_gold_table(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the gold day is put back, of which silver stays as it is."""
    world = make_world(days=1, domains=DAILY)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    world.deliver_rows("transactions", DAYS[0], "t.jsonl", [sale(0, 1, DAYS[0])])
    world.refresh()
    before = world.digests()[GOLD]
    world.deliver_rows("transactions", DAYS[0], "wrong.jsonl", [wrong()])
    world.recompute([RAW, SILVER], [DAY])

    def published_and_put_back() -> None:
        with world.open() as other:
            recompute_step(other, lambda: world.spark, Step(GOLD, (DAY,)), Author("theirs", "an asset run"))
            assert world.digests()[GOLD] != before
            rollback(other, chosen_publications(other, run="theirs"), person("it was wrong"))
        assert world.digests()[GOLD] == before

    once_at(monkeypatch, computing, "gate.decided", published_and_put_back)
    with world.open() as platform, suppress(PlatformError):
        recompute_step(platform, lambda: world.spark, Step(GOLD, (DAY,)), Author("slow", "an asset run"))
    assert world.digests()[GOLD] == before, "a run that was just publishing the day undid the rollback"
