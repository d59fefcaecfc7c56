"""Nothing unproved is visible: days that fail a check are held alone, by name, and come back once they are right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, recompute_step
from platform_assets.engine.results import StepResult
from platform_assets.operations.lineage.held_days import held_days, withdrawals
from platform_assets.planning.steps import Step
from platform_assets.quality.findings import Check
from platform_assets_tests.support.history import TWO_GOLDS, WINDOWS, no_session
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, sale

KNOWN = 16
"""Days that are enough to tell an unusual one."""

LINES = 10


def day(number: int) -> date:
    return date(2017, 1, number)


def lines(number: int, count: int = LINES, **changes: Any) -> list[dict[str, Any]]:
    """Baskets of one line each, on one day, in the stores 1 to 5."""
    return [
        sale(100 * number + n, 1, str(day(number)), store_id=1 + n % 5, household_id=1 + n, **changes)
        for n in range(count)
    ]


def deliver(world: World, number: int, rows: Iterable[dict[str, Any]], name: str = "a.jsonl") -> None:
    world.deliver_rows("transactions", str(day(number)), name, rows)


def sixteen_days(lakes: Lakes, domain: str = TWO_GOLDS) -> World:
    """The same sixteen days in four tables, or in those of another domain."""
    world = lakes.new(days=20, domains=domain)
    for number in range(1, KNOWN + 1):
        deliver(world, number, lines(number))
    first = steps_of(world.refresh())
    assert all(step.changes == {} for step in first.values())
    return world


def up_to_silver(world: World, numbers: Iterable[int]) -> StepResult:
    days = [day(number) for number in numbers]
    return steps_of(world.recompute(("raw.transactions", "silver.transactions"), days))["silver.transactions"]


def steps_of(result: RefreshResult) -> dict[str, StepResult]:
    return {step.table: step for step in result.steps}


def again(
    world: World,
    table: str,
    numbers: Iterable[int],
    *,
    force: bool = False,
    accept: Collection[Check] = (),
    session: Callable[[], SparkSession] | None = None,
    prepare: Callable[[Platform], None] = lambda platform: None,
) -> StepResult:
    step = Step(table, tuple(day(number) for number in numbers))
    with world.open() as platform:
        prepare(platform)
        start = session or (lambda: world.spark)
        return recompute_step(platform, start, step, Author("test", "a test"), force=force, accept=accept)


def holds(world: World, table: str) -> dict[int, str]:
    """The gate that holds each day of a table."""
    with world.open() as platform:
        return {hold.day.day: hold.gate for hold in platform.ledger.holds(table)}


def test_a_held_day_counts_with_its_last_good_content_until_new_input_lifts_the_hold(prepared: Prepared) -> None:
    """Three refreshes of two tables, the first of sixteen days to compare with."""
    world = prepared(sixteen_days, WINDOWS)
    before = world.rows("silver.transactions", str(day(10)))
    deliver(world, 17, lines(17))
    late = f"{day(17)}T08:00:00Z"
    deliver(world, 17, lines(10, voided=True, updated_at=late), "voids.jsonl")
    steps = steps_of(world.refresh())
    result = steps["silver.transactions"]
    assert [finding.check for finding in result.held[day(10)]] == ["volume"]
    assert set(result.published) == {day(17)}
    assert world.rows("silver.transactions", str(day(10))) == before
    with world.open() as platform:
        [held] = held_days(platform, platform.ledger.holds())
    assert (held.hold.day, held.shown.rows if held.shown else None) == (day(10), LINES)
    [command] = withdrawals([held])
    assert command.startswith("platform-assets undo transactions/2017-01-17/voids.jsonl --reason ")
    household = steps["gold.household_28d"]
    assert set(household.published) == {day(17)}
    [note] = household.notes[day(17)]
    assert note.startswith("reads silver.transactions with its last good content of 2017-01-10 (held: ")
    assert "too few rows" in note

    assert not world.refresh().steps
    assert set(again(world, "silver.transactions", [10], session=no_session).held) == {day(10)}
    assert set(again(world, "silver.transactions", [10], force=True).held) == {day(10)}

    later = f"{day(17)}T09:00:00Z"
    deliver(world, 17, lines(10, updated_at=later, sales_value="4.00")[1:], "back.jsonl")
    steps = steps_of(world.refresh())
    assert set(steps["silver.transactions"].published) == {day(10)}
    assert holds(world, "silver.transactions") == {}
    change = steps["silver.transactions"].changes[day(10)]
    assert (change.added, change.removed, change.changed) == (0, 1, 9)
    assert (change.sums_before["sales_value"], change.sums_after["sales_value"]) == (Decimal("25.00"), Decimal("36.00"))
    assert set(steps["gold.household_28d"].published) == {day(number) for number in range(10, 18)}
    assert steps["gold.household_28d"].notes == {}


@pytest.mark.proof
def test_days_that_are_up_to_date_start_no_session_and_new_code_makes_them_stale(prepared: Prepared) -> None:
    """A held day of silver is not read as the same day; two of gold are computed, and tried before, by new code."""
    world = prepared(sixteen_days)
    for table in ("silver.transactions", "silver.products", "gold.daily_sales", "gold.household_28d"):
        result = again(world, table, [1, 2, 3], session=no_session)
        assert result.up_to_date == {day(1), day(2), day(3)}
        assert not result.published
        assert not result.held

    def other_code(platform: Platform) -> None:
        platform.code_versions["gold.daily_sales"] = "other"

    result = again(world, "gold.daily_sales", [2, 3], prepare=other_code)
    assert set(result.published) == {day(2), day(3)}
    assert result.changes == {}
    assert set(again(world, "gold.daily_sales", [1], force=True).published) == {day(1)}

    late = f"{day(16)}T12:00:00Z"
    deliver(world, 16, lines(10, voided=True, updated_at=late), "voids.jsonl")
    up_to_silver(world, [10, 16])
    blocked = again(world, "gold.daily_sales", [9, 10], session=no_session)
    assert blocked.up_to_date == {day(9)}
    assert "silver.transactions is held on 2017-01-10 and its last good content stays" in blocked.blocked[day(10)]
