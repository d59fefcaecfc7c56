"""What was explained is what runs; where others publish first, what still holds is published and they are named."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, gc_paused, in_turns, publish_changes, publish_rest, replaced
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.results import published_meanwhile
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.step import stage as staging
from platform_assets.lakehouse.errors import Conflict, OvertakenError
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.opening import open_platform
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.records.manifest import TableChange, new_publication
from platform_assets.settings import load_settings
from platform_assets_tests.support.history import DAYS, WINDOWS, correct, four_days
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.shelf import SALES, Days, change, contents, day, stage
from platform_assets_tests.support.world import World

ME, OTHERS = Author("mine", "a test"), Author("theirs", "a test")


MINE: Days = {day(n): [("mine", n)] for n in range(3)}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A lake with three days of sales."""
    with open_platform(load_settings(state=tmp_path / "state")) as platform:
        publish_theirs(platform, *MINE)
        yield platform


def staged(platform: Platform, days: Days) -> tuple[str, TableChange]:
    publication = stage(platform.lake, SALES, days)
    return publication, change(platform.lake, SALES, publication)


def publish_theirs(platform: Platform, *days: object) -> None:
    publication, theirs = staged(platform, {when: [("theirs", 0)] for when in MINE if when in days})
    publish_changes(platform, publication, "recompute", [theirs], OTHERS)


def whose(platform: Platform) -> list[str]:
    return [rows[0][0] for rows in contents(platform.lake, SALES).values()]


def test_days_that_others_replaced_are_left_out_however_often_they_do_it(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    publish_theirs(platform, day(0))

    def and_once_more(met: Met, changes: Sequence[TableChange]) -> Rest:
        if day(0) in changes[0].days:
            publish_theirs(platform, day(1))
        return replaced(met)

    met = publish_rest(platform, publication, "recompute", [mine], ME, and_once_more)
    assert met == (day(0), day(1))
    assert whose(platform) == ["theirs", "theirs", "mine"]


def test_what_was_staged_goes_if_others_replaced_all_of_it(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    publish_theirs(platform, *MINE)
    before = current_release(platform.lake).number
    assert publish_rest(platform, publication, "recompute", [mine], ME) == tuple(MINE)
    assert current_release(platform.lake).number == before
    assert not platform.lake.stage_path(SALES, publication).exists()


def test_days_go_on_the_release_that_was_looked_at_and_on_no_other(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    read = current_release(platform.lake).number
    publish_theirs(platform, day(2))
    seen: list[str] = []

    def looked_at(met: Met, changes: Sequence[TableChange]) -> Rest:
        seen.append(type(met).__name__)
        now = current_release(platform.lake).number
        if len(seen) == 1:
            publish_theirs(platform, day(1))
        return Rest(replaced(met).left_out, now)

    met = publish_rest(platform, publication, "recompute", [mine], ME, looked_at, on_release=read)
    assert seen == ["OvertakenError", "OvertakenError", "Conflict"]
    assert met == (day(1), day(2))
    assert whose(platform) == ["mine", "theirs", "theirs"]


@pytest.mark.parametrize("error", [OvertakenError(1, 2), Conflict({SALES: (day(0),)})])
def test_who_is_overtaken_again_and_again_is_told(error: Met) -> None:
    turns: list[str] = []

    def overtaken() -> None:
        turns.append(new_publication())
        raise error

    with pytest.raises(type(error)):
        in_turns(overtaken)
    assert len(turns) == 20


def test_who_wants_no_other_turn_gives_up_at_once() -> None:
    turns: list[int] = []

    def overtaken() -> None:
        turns.append(1)
        raise OvertakenError(1, 2)

    def gives_up(met: Met) -> None:
        raise met

    with pytest.raises(OvertakenError):
        in_turns(overtaken, gives_up)
    assert len(turns) == 1


RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"


DAY = date.fromisoformat(DAYS[1])


def refreshed(world: World, run: str) -> RefreshResult:
    with world.open() as platform:
        return refresh(platform, lambda: world.spark, Author(run, f"{run} refresh", "Zoë"))


@pytest.mark.proof
def test_who_finds_its_days_published_by_another_run_names_that_run(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lake of four days, if no other test has made it, and two refreshes of one of them."""
    world = prepared(four_days)
    correct(world, DAYS[1], "ours")
    with world.open() as platform:
        since = platform.current_release().number
    once_at(monkeypatch, staging, "stage.before_publish", lambda: refreshed(world, "theirs"))
    done = refreshed(world, "ours")
    assert {step.table: step.published for step in done.steps} == {SILVER: {}, GOLD: {}}
    with world.open() as platform:
        planned = {RAW: None, SILVER: [DAY], GOLD: [DAY]}
        others = published_meanwhile(platform, since, "ours", planned)
        assert [(other.table, other.days, other.by.run) for other in others] == [
            (SILVER, 1, "theirs"),
            (GOLD, 1, "theirs"),
        ]
        assert published_meanwhile(platform, platform.current_release().number, "ours", planned) == ()
    outcome = refresh_report(done, 1.0, None, others)
    assert not outcome.needs_a_look
    assert [other["run"] for other in outcome.data["published_meanwhile"]] == ["theirs", "theirs"]
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    by = others[0].by
    assert (
        f"{SILVER}: 1 day not by this run but by theirs of Zoë (theirs refresh), publication {by.publication}" in said
    )


def executed(world: World, platform: Platform, plan: Plan, request: Request = BY_PERSON) -> RefreshResult:
    return refresh(platform, lambda: world.spark, ME, request=request, plan=plan)


def done(result: RefreshResult) -> dict[str, set[date]]:
    """Every day that a refresh computed or struck."""
    found = {step.table: set(step.published) | set(step.not_published) for step in result.steps}
    for table, days in result.struck.items():
        found.setdefault(table, set()).update(days)
    return found


def planned(plan: Plan) -> dict[str, set[date]]:
    return {step.table: set(step.days) for step in plan.steps}


def test_the_plan_that_was_explained_is_executed_as_it_is_unless_raw_tables_took_something_since(
    prepared: Prepared,
) -> None:
    """Four days computed, one corrected, one forced and one corrected once it was explained."""
    world = prepared(four_days, WINDOWS)
    correct(world, DAYS[1], "later")
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], ME)
        plan = plan_steps(platform, BY_PERSON)
        result = executed(world, platform, plan)
        assert result.plan is plan
        assert done(result) == planned(plan)
        assert plan_steps(platform, BY_PERSON).is_empty
        force = Request(frozenset({"gold.household_28d"}), frozenset({date.fromisoformat(DAYS[2])}), force=True)
        again = plan_steps(platform, force)
        assert done(executed(world, platform, again, force)) == planned(again)
        plan = plan_steps(platform, BY_PERSON)
        assert plan.is_empty
        correct(world, DAYS[3], "since")
        result = executed(world, platform, plan)
        assert result.plan is not plan
        assert done(result) == planned(result.plan) != {}


def test_nothing_is_searched_within_and_all_is_searched_afterwards() -> None:
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "who is within another one leaves it as it was"
    assert gc.isenabled()


def test_an_error_brings_it_back_too() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
