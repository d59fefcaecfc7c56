"""What was explained is what runs, the very plan; what is forced are the days named."""

from __future__ import annotations

from datetime import date

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.state.planner import plan_steps
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import DAYS, correct, four_days
from platform_assets_tests.support.world import World

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
