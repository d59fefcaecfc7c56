"""A rollback undoes what was computed: what was delivered stays, and no run that was publishing undoes it."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.late.approvals import approve
from platform_assets.engine.late.queue import LateQueueError, late_queue
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import recompute_step, refresh
from platform_assets.engine.step import compute as computing
from platform_assets.errors import PlatformError
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.rows_aside import LateSelection
from platform_assets.planning.steps import Step
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.history import GOODS, TILLS, History, Version, history, person
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.world import MakeWorld, World, product, sale

RAW = "raw.transactions"
LATE = "2017-04-05"
"""90 days after the 5th of January, so that rows of the 2nd are late."""


def with_a_late_row(make_world: MakeWorld) -> tuple[History, str]:
    """A run took a file of which one row is in time and one is late, and computed what it reached."""
    story = history(make_world)
    story.refresh()
    path = story.deliver(LATE, "mixed.jsonl", Version(5, 5, 3, "5.00"), Version(2, 2, 3, "7.00"))
    with story.world.open() as platform:
        refresh(platform, lambda: story.world.spark, Author("wrong", "a run"))
        assert [rows.rows for rows in late_queue(platform)] == [1]
    return story, path


def delivered(world: World, table: str) -> int:
    """Rows of a raw table that a source delivered, those of withdrawn arrivals included."""
    return len([row for row in world.rows(table) if row["_kind"] in ("record", "void")])


def accounted_for(world: World, table: str = RAW) -> tuple[int, int]:
    """Rows that landed, and those that are in raw, refused or in the late queue."""
    with world.open() as platform:
        came = [one for one in platform.ledger.arrivals(table) if one.kind == "delivery" and one.reason is None]
        waiting = sum(rows.rows for rows in late_queue(platform) if rows.table == table)
    refused = sum(one.refused for one in came)
    return sum(one.landed for one in came), delivered(world, table) + refused + waiting


def undo(platform: Platform, publication: str | None = None, run: str | None = None) -> None:
    """Roll back, if that is not refused."""
    with suppress(PlatformError):
        rollback(platform, chosen_publications(platform, publication, run), person("it was wrong"))


@pytest.mark.proof
def test_who_rolls_back_a_run_loses_none_of_the_rows_that_wait(make_world: MakeWorld) -> None:
    """Landed = raw + refused + late queue, whatever is rolled back."""
    story, path = with_a_late_row(make_world)
    landed, there = accounted_for(story.world)
    assert landed == there == 2
    with story.world.open() as platform:
        undo(platform, run="wrong")
        assert [(rows.arrival, rows.rows) for rows in late_queue(platform)] == [(path, 1)], "the row still waits"
    assert accounted_for(story.world) == (2, 2)


@pytest.mark.proof
def test_who_rolls_back_an_approval_lets_no_row_enter_twice(make_world: MakeWorld) -> None:
    """What an approval took is in raw, which is append-only, and so it is not in the queue again."""
    story, path = with_a_late_row(make_world)
    spark = story.world.spark
    with story.world.open() as platform:
        approve(platform, lambda: spark, LateSelection(arrival=path), person())
        made = platform.ledger.arrivals(RAW)[-1]
        assert made.kind == "approval"
        undo(platform, made.publication)
    assert accounted_for(story.world) == (2, 2)
    with story.world.open() as platform, suppress(LateQueueError):
        approve(platform, lambda: spark, LateSelection(arrival=path), person())
    assert delivered(story.world, RAW) == 2, "each row that landed is in raw once"


@pytest.mark.proof
def test_rows_that_entered_when_their_day_came_do_not_enter_again_after_a_rollback(make_world: MakeWorld) -> None:
    """The publication that took them is rolled back, and the next refresh takes what is due."""
    world = make_world(days=3, calendar_last=None, domains=GOODS)
    rows = [product(1, "2017-01-03", "MEAT"), product(1, "2017-01-06", "DELI")]
    world.deliver_rows("products", "2017-01-03", "p.jsonl", rows)
    world.refresh()
    world = world.on("2017-01-06")
    world.refresh()
    assert accounted_for(world, "raw.products") == (2, 2)
    with world.open() as platform:
        entered = platform.ledger.arrivals("raw.products")[-1]
        assert entered.kind == "due"
        undo(platform, entered.publication)
    world.refresh()
    assert accounted_for(world, "raw.products") == (2, 2)


TAKEN, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"
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
        ingest(platform, lambda: world.spark, platform.catalogue[TAKEN], Author("ingest", "a test"))

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
