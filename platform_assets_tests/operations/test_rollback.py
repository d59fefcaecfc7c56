"""Rolled back is exactly what was published: the digests of before, other days untouched, and no tick undoes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute_step, refresh
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import current_release
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import rebuild
from platform_assets.operations import rollback as rolling_back
from platform_assets.operations.rollback import Rollback, lift_rollbacks, rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.steps import Step
from platform_assets.records.history import LASTING, ROLL_BACK, Hold
from platform_assets_tests.support.history import DAYS, LATER, LATEST, TILLS, four_days
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, World, sale

SILVER, GOLD = "silver.transactions", "gold.daily_sales"
Digests = dict[str, dict[date, str]]


def corrected(lakes: Lakes) -> World:
    """A run gave the second day's first sale another value."""
    world = lakes.again(four_days)
    correct(world, DAYS[1], "wrong", LATER, sales_value="99.00")
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(four_days)


def run(world: World, name: str) -> dict[str, set[str]]:
    """Refresh as a run of some name; the days it published, by table."""
    with world.open() as platform:
        done = refresh(platform, lambda: world.spark, Author(name, "a test"))
    return {step.table: {str(day) for day in step.published} for step in done.steps if step.published}


def correct(world: World, day: str, name: str, updated_at: str, **changes: Any) -> dict[str, set[str]]:
    """Another value for the first sale of a day, and a refresh."""
    row = sale(10 * DAYS.index(day), 1, day, updated_at=updated_at, **changes)
    world.deliver_rows("transactions", DAYS[-1], f"{name}.jsonl", [row])
    return run(world, name)


def undo(world: World, **chosen: Any) -> Rollback:
    options = {name: chosen.pop(name) for name in ("days", "cascade", "dry_run") if name in chosen}
    with world.open() as platform:
        publications = chosen_publications(platform, **chosen)
        return rollback(platform, publications, Author("undo", "it was wrong", "Zoë"), **options)


def derived(world: World) -> Digests:
    """Digests of everything that was computed."""
    return {table: days for table, days in world.digests().items() if not table.startswith("raw.")}


def publication_of(world: World, table: str, day: str) -> str:
    with world.open() as platform:
        return platform.ledger.current_days(table)[date.fromisoformat(day)].publication


def holds(world: World) -> set[tuple[str, str, str]]:
    with world.open() as platform:
        return {(hold.table, str(hold.day), hold.gate) for hold in platform.ledger.holds()}


def test_a_run_is_undone_at_once_and_stays_undone_until_something_new_comes(world: World, prepared: Prepared) -> None:
    """The first of the module waits for its lakes; then three refreshes find out what is left alone."""
    before, rows = derived(world), world.rows(GOLD)
    world = prepared(corrected)
    assert derived(world) != before
    with world.open() as platform:
        *_, first = platform.ledger.history(SILVER, date(2017, 1, 2))
    with pytest.raises(PlatformError, match="published again since"):
        undo(world, publication=first.publication)
    shown = undo(world, run="wrong", dry_run=True)
    assert shown.release is None
    assert derived(world) != before, "a dry run"

    done = undo(world, run="wrong")
    assert done.days == shown.days
    assert done.raw == ("raw.transactions",)
    assert (derived(world), world.rows(GOLD)) == (before, rows)
    assert holds(world) == {(SILVER, DAYS[1], ROLL_BACK)}, "what gold reads went back with it"
    assert run(world, "tick") == {}, "no tick undoes it"
    assert derived(world) == before
    with world.open() as platform:
        assert done.release == current_release(platform.lake).number
        known = platform.ledger.current_days(SILVER), platform.ledger.history(SILVER, date(2017, 1, 2))
        rebuild(platform.lake, platform.ledger)
        assert (platform.ledger.current_days(SILVER), platform.ledger.history(SILVER, date(2017, 1, 2))) == known

    published = correct(world, DAYS[1], "right", LATEST, sales_value="9.00")
    assert published[SILVER] == {DAYS[1]}
    assert published[GOLD] == {DAYS[1]}
    assert {table for table, _, _ in holds(world)} & {SILVER, GOLD} == set()


def test_a_day_that_had_nothing_before_is_as_if_it_had_never_been_computed(world: World) -> None:
    with world.open() as platform:
        first = platform.ledger.indexed()
        newest = publication_of(world, GOLD, DAYS[3])
    done = undo(world, publication=newest, days={date(2017, 1, 4)})
    assert done.days[GOLD] == (date(2017, 1, 4),)
    assert len(first) > 1
    assert world.rows(GOLD, DAYS[3]) == []
    assert date(2017, 1, 4) not in derived(world)[GOLD]
    assert date(2017, 1, 3) in derived(world)[GOLD]
    assert run(world, "tick").get(GOLD, set()) == set(), "held"
    recomputed = world.recompute(["silver.products", SILVER, GOLD], [date(2017, 1, 4)])
    assert [len(step.published) for step in recomputed.steps] == [1, 1, 1]


@pytest.mark.proof
def test_a_late_row_that_moves_away_from_a_day_put_back_until_lifted_waits_with_both_days(prepared: Prepared) -> None:
    world = prepared(corrected)
    with world.open() as platform:
        lasting = Author("undo", "it was wrong", "Zoë", decides=LASTING)
        rollback(platform, chosen_publications(platform, run="wrong"), lasting)
    before = derived(world)
    world.deliver_rows("transactions", DAYS[-1], "moved.jsonl", [sale(10, 1, DAYS[2], updated_at=LATEST)])
    assert SILVER not in run(world, "late"), "alone, the other day would count the sale twice"
    assert derived(world) == before
    with world.open() as platform:
        refused = recompute_step(
            platform, lambda: world.spark, Step(SILVER, (date(2017, 1, 2),)), Author("ui", "asked"), force=True
        )
        assert "new input or code: `platform-assets undo rollback:" in refused.held[date(2017, 1, 2)][0].message
        for table in (SILVER, GOLD):
            lift_rollbacks(platform, table, None, Author("lift", "it was right"))
    published = run(world, "next")
    assert published[SILVER] == published[GOLD] == {DAYS[1], DAYS[2]}
    assert len([row for row in world.rows(SILVER) if row["basket_id"] == 10]) == 1


@pytest.mark.proof
def test_what_is_published_while_a_rollback_is_planned_counts(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The day to which a sale moved comes in that moment."""
    world = make_world(days=8, calendar_last=None, today=date(2017, 1, 4), domains=TILLS)
    for day in range(1, 9):
        world.deliver("transactions", f"2017-01-{day:02}", "empty.jsonl", "")
    world.deliver_rows("transactions", DAYS[2], "first.jsonl", [sale(1, 1, DAYS[1])])
    world.refresh()
    moved = sale(1, 1, "2017-01-05", updated_at="2017-01-05T12:00:00Z")
    world.deliver_rows("transactions", DAYS[3], "moved.jsonl", [moved])
    world.refresh()
    assert world.rows(SILVER) == []
    world = world.on("2017-01-05")
    left = publication_of(world, SILVER, DAYS[1])
    once_at(monkeypatch, rolling_back, "rollback.planned", world.refresh)
    with pytest.raises(PlatformError, match=f"moved between {DAYS[1]} and 2017-01-05"):
        undo(world, publication=left)
    assert [str(row["event_date"]) for row in world.rows(SILVER)] == ["2017-01-05"]
    assert holds(world) == set()


def test_what_cannot_be_rolled_back_says_why(world: World) -> None:
    with pytest.raises(PlatformError, match="no publication 'nothing'"):
        undo(world, publication="nothing")
    with pytest.raises(PlatformError, match="No run 'nobody' published"):
        undo(world, run="nobody")
    with pytest.raises(PlatformError, match="Nothing was published after release 10000"):
        undo(world, to=10_000)
    with pytest.raises(PlatformError, match=r"raw is append-only.*\n.*undo"):
        undo(world, publication=publication_of(world, "raw.transactions", DAYS[1]))


@pytest.mark.proof
@pytest.mark.parametrize("way", ["refresh", "recompute"])
def test_a_rollback_in_the_moment_after_a_publication_stands(
    world: World, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A run computes a day and publishes it; before it ends its holds, somebody rolls it back. Then a tick."""
    before = derived(world)
    row = sale(10, 1, DAYS[1], updated_at=LATER, sales_value="99.00")
    world.deliver_rows("transactions", DAYS[-1], "wrong.jsonl", [row])
    undone: list[Rollback] = []

    def undo_at_once() -> None:
        if publication_of(world, SILVER, DAYS[1]) != first and not undone:
            undone.append(undo(world, publication=publication_of(world, SILVER, DAYS[1])))

    first = publication_of(world, SILVER, DAYS[1])
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Ledger, "hold", doing(undo_at_once, Ledger.hold))
        if way == "refresh":
            run(world, "wrong")
        else:
            world.recompute(["raw.transactions", SILVER], [date(2017, 1, 2)])
    assert undone
    assert (SILVER, DAYS[1], ROLL_BACK) in holds(world)
    assert run(world, "tick").get(SILVER, set()) == set()
    assert derived(world)[SILVER] == before[SILVER]


def doing(act: Callable[[], None], hold: Callable[[Ledger, Iterable[Hold]], None]) -> Callable[..., None]:
    """What a ledger does when days are held, after something else has happened that holds days itself."""
    busy: list[bool] = []

    def held(ledger: Ledger, given: Iterable[Hold]) -> None:
        if not busy:
            busy.append(True)
            act()
            busy.clear()
        hold(ledger, given)

    return held


@pytest.mark.proof
def test_what_a_cascade_undoes_is_undone_in_quarantine_too(make_world: MakeWorld) -> None:
    """A correction, then a broken row; the correction is rolled back with all that came after it."""
    world = make_world(days=1, domains=TILLS)
    [day] = DAYS[:1]

    def taken(name: str, row: dict[str, Any]) -> None:
        world.deliver_rows("transactions", day, f"{name}.jsonl", [row])
        run(world, name)

    taken("first", sale(1, 1, day))
    before = world.digests()[SILVER]
    taken("corrected", sale(1, 1, day, updated_at=f"{day}T12:00:00Z", sales_value="9.00"))
    taken("broken", sale(5, 1, day, quantity=-1))
    assert len(world.rows("quarantine.transactions")) == 1
    undo(world, run="corrected", cascade=True)
    assert world.digests()[SILVER] == before
    with world.open() as platform:
        figures = platform.ledger.current_days(SILVER)[date.fromisoformat(day)].figures
    assert (figures["raw"], figures["quarantined"], world.rows("quarantine.transactions")) == (1, 0, [])
