"""What was explained is what runs, the very plan; what is forced are the days named."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Rule
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.state.planner import plan_steps
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.domains import windows
from platform_assets_tests.support.history import WINDOWS, person
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import DAYS, correct, four_days
from platform_assets_tests.support.world import MakeWorld, World, sale

AUTHOR, RAW = Author("test", "a test"), "raw.transactions"


def executed(world: World, platform: Platform, plan: Plan, request: Request = BY_PERSON) -> RefreshResult:
    return refresh(platform, lambda: world.spark, AUTHOR, request=request, plan=plan)


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
    world = prepared(four_days)
    correct(world, DAYS[1], "later")
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], AUTHOR)
        plan = plan_steps(platform, BY_PERSON)
        result = executed(world, platform, plan)
        assert result.plan is plan
        assert done(result) == planned(plan)
        assert plan_steps(platform, BY_PERSON).is_empty
        force = Request(frozenset({"gold.daily_sales"}), frozenset({date.fromisoformat(DAYS[2])}), force=True)
        again = plan_steps(platform, force)
        assert done(executed(world, platform, again, force)) == planned(again)
        plan = plan_steps(platform, BY_PERSON)
        assert plan.is_empty
        correct(world, DAYS[3], "since")
        result = executed(world, platform, plan)
        assert result.plan is not plan
        assert done(result) == planned(result.plan) != {}


SILVER = "silver.transactions"


FORCED = ("2017-01-01", "2017-01-02", "2017-01-03")


DEAR = 100


def run(world: World, name: str, request: Request) -> None:
    """A refresh as a run of some name."""
    with world.open() as platform:
        refresh(platform, lambda: world.spark, Author(name, "a test"), request=request)


def baskets(world: World, day: str) -> set[int]:
    return {row["basket_id"] for row in world.rows(SILVER, day)}


@pytest.mark.proof
def test_days_that_are_put_back_stay_so_where_another_day_is_forced(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong rule is computed and rolled back; then the third day is asked for, with the window that it reads."""
    world = make_world(days=3, domains=WINDOWS)
    for number, day in enumerate(FORCED):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day)])
    world.deliver_rows("transactions", FORCED[0], "dear.jsonl", [sale(DEAR, 1, FORCED[0], sales_value="900.00")])
    world.refresh()
    assert baskets(world, FORCED[0]) == {0, DEAR}

    raw, _, *others = windows.TABLES
    strict = replace(SILVER_TRANSACTIONS, rules=(Rule("cheap", "sales_value < 100", "A rule that is wrong."),))
    monkeypatch.setattr(windows, "DOMAIN", replace(windows.DOMAIN, tables=(raw, strict, *others)))
    run(world, "strict", BY_PERSON)
    assert baskets(world, FORCED[0]) == {0}
    with world.open() as platform:
        rollback(platform, chosen_publications(platform, run="strict"), person("the rule is wrong"))
    assert baskets(world, FORCED[0]) == {0, DEAR}

    third = frozenset({date.fromisoformat(FORCED[2])})
    run(world, "third", Request(days=third, by_person=True, force=True))
    with world.open() as platform:
        held = {str(hold.day) for hold in platform.ledger.holds(SILVER) if hold.gate == ROLL_BACK}
    assert baskets(world, FORCED[0]) == {0, DEAR}, "the first day was not named, and a person had put it back"
    assert FORCED[0] in held
