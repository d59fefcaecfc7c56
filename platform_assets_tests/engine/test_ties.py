"""A record that moves between days is never seen twice or nowhere because one of the two was held."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from platform_assets.engine import refresh as refreshing
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult, recompute_step
from platform_assets.engine.step import compute as computing
from platform_assets.engine.step.stage import Stage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.planning.steps import Step
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.world import MakeWorld, World, sale

TABLE = "silver.transactions"
DAYS = [f"2017-01-{day:02}" for day in range(1, 21)]
FROM, TO = DAYS[15], DAYS[17]
LINES = 10
MOVING = 100 * DAYS.index(FROM)
"""The basket that turns out to be of another day."""
LATER, LATEST = f"{DAYS[-1]}T12:00:00Z", f"{DAYS[-1]}T13:00:00Z"


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Twenty days of ten baskets each."""
    world = make_world(days=len(DAYS), domains=TILLS)
    for day in DAYS:
        world.deliver_rows("transactions", day, "t.jsonl", baskets(day))
    world.refresh()
    return world


def baskets(day: str, **changes: Any) -> list[dict[str, Any]]:
    """The ten baskets of a day."""
    return [sale(100 * DAYS.index(day) + n, 1, day, **changes) for n in range(LINES)]


def staying(day: str, **changes: Any) -> list[dict[str, Any]]:
    """Those that are of no other day."""
    return [row for row in baskets(day, **changes) if row["basket_id"] != MOVING]


def days_of_the_moving_basket(world: World) -> list[str]:
    return [str(row["event_date"]) for row in world.rows(TABLE) if row["basket_id"] == MOVING]


def held(world: World) -> dict[str, str]:
    with world.open() as platform:
        return {str(hold.day): hold.gate for hold in platform.ledger.holds(TABLE)}


def published(result: RefreshResult) -> set[str]:
    return {str(day) for step in result.steps if step.table == TABLE for day in step.published}


@pytest.mark.proof
def test_where_one_of_two_days_is_held_the_other_waits_for_it(world: World) -> None:
    """Two refreshes, with a batch for each day."""
    world = World(
        world.settings.model_copy(update={"batch_days": 1, "batch_mib": 0}), world.spark
    )  # however small the batches
    moved = sale(MOVING, 1, TO, updated_at=LATER)
    voids = staying(FROM, voided=True, updated_at=LATER)
    world.deliver_rows("transactions", DAYS[-1], "moved.jsonl", [moved, *voids])
    result = world.refresh()
    assert published(result) == set(), "or the basket were counted twice"
    assert days_of_the_moving_basket(world) == [FROM], "as before"
    assert held(world) == {FROM: "volume", TO: "conservation"}
    [step] = [step for step in result.steps if step.table == TABLE]
    told = {str(day): reason for day, reason in step.not_published.items()}
    assert f"records moved between this day and {FROM}, which is held" in told[TO]
    assert published(world.refresh()) == set(), "neither is tried again as it is"

    world.deliver_rows("transactions", DAYS[-1], "corrected.jsonl", staying(FROM, updated_at=LATEST))
    assert published(world.refresh()) == {FROM, TO}
    assert days_of_the_moving_basket(world) == [TO]
    assert held(world) == {}


@pytest.mark.proof
@pytest.mark.parametrize(("home", "away"), [(FROM, TO), (TO, FROM)])
def test_half_of_a_move_is_not_published_where_another_run_was_first_with_the_other_day(
    world: World, monkeypatch: pytest.MonkeyPatch, home: str, away: str
) -> None:
    """A run that computed one of two days before a correction came publishes it while another computes both."""
    basket = 100 * DAYS.index(home)
    days = {date.fromisoformat(day) for day in (FROM, TO)}
    first: list[Callable[[], object]] = []
    publish, nothing_met = vars(refreshing)["_publish"], vars(refreshing)["_Met"]()

    def later(*args: Any, **options: Any) -> object:
        first.append(lambda: publish(*args, **options))
        return nothing_met

    with world.open() as one, world.open() as other:
        with monkeypatch.context() as slow:
            slow.setattr(refreshing, "_publish", later)
            step = Step(TABLE, (date.fromisoformat(TO),))
            recompute_step(one, lambda: world.spark, step, Author("one", "by force"), force=True)
        world.deliver_rows("transactions", DAYS[-1], "moved.jsonl", [sale(basket, 1, away, updated_at=LATER)])
        ingest(other, lambda: world.spark, other.catalogue["raw.transactions"], Author("other", "taken"))
        once_at(monkeypatch, computing, "gate.decided", first[0])
        recompute_step(other, lambda: world.spark, Step(TABLE, tuple(sorted(days))), Author("other", "both"))
        newest = other.current_release().number
    lake = Lake.at(world.settings.lake)
    for number in range(newest - 2, newest + 1):
        rows = read_arrow(lake, TABLE, release=number).to_pylist()
        assert len([row for row in rows if row["basket_id"] == basket]) == 1, f"release {number}"
    assert [str(row["event_date"]) for row in world.rows(TABLE) if row["basket_id"] == basket] == [away]


@pytest.mark.proof
def test_a_day_computed_again_in_a_stage_takes_those_along_that_it_is_tied_to(world: World) -> None:
    """A stage with two days, of which one alone is computed again and then fails."""
    world.deliver_rows("transactions", DAYS[-1], "moved.jsonl", [sale(MOVING, 1, TO, updated_at=LATER)])
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue["raw.transactions"], Author("test", "taken"))
        stage = Stage(platform, Author("test", "a stage"))
        days = tuple(date.fromisoformat(day) for day in (FROM, TO))
        stage.step(lambda: world.spark, Step(TABLE, days))
        assert set(stage.staged.of(TABLE)) == set(days)
        done = stage.step(lambda: world.spark, Step(TABLE, days[:1]))
        assert set(done.published) == set(days)
        stage.discard()


@pytest.mark.proof
def test_a_withdrawal_sends_a_record_home_or_leaves_it_where_it_is(make_world: MakeWorld) -> None:
    """Twenty days, a withdrawal that empties one of them, and a refresh that may publish neither day alone."""
    world = make_world(days=len(DAYS), domains=TILLS)
    for day in DAYS:
        if day != TO:
            world.deliver_rows("transactions", day, "t.jsonl", baskets(day))
    bad = world.deliver_rows("transactions", TO, "bad.jsonl", [*baskets(TO), sale(MOVING, 1, TO, updated_at=LATER)])
    world.refresh()
    assert days_of_the_moving_basket(world) == [TO]
    with world.open() as platform:
        path = str(bad.relative_to(world.settings.landing_folder))
        withdraw(platform, lambda: world.spark, [path], Author("test", "the till was set up wrong"))
    assert published(world.refresh()) == set(), "or the basket were counted twice"
    assert days_of_the_moving_basket(world) == [TO], "as before"
    assert held(world) == {FROM: "conservation", TO: "volume"}

    world.deliver_rows("transactions", DAYS[-1], "repaired.jsonl", baskets(TO))
    assert published(world.refresh()) == {FROM, TO}
    assert days_of_the_moving_basket(world) == [FROM]
    assert held(world) == {}
