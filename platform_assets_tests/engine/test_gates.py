"""Nothing unproved is visible: days that fail a check are held alone, by name, and come back once they are right."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.domains.retail.transforms import gold, silver
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, recompute_step
from platform_assets.engine.results import StepResult
from platform_assets.engine.step.work import AcceptError
from platform_assets.operations.lineage.held_days import held_days, warned_day, withdrawals
from platform_assets.planning.steps import Step
from platform_assets.quality.findings import Check
from platform_assets_tests.support.history import TILLS, TWO_GOLDS, WINDOWS
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, World, sale

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


def known_days(lakes: Lakes) -> World:
    """Sixteen days that are all alike, published in silver."""
    world = lakes.new(days=20, domains=TILLS)
    for number in range(1, KNOWN + 1):
        deliver(world, number, lines(number))
    up_to_silver(world, range(1, KNOWN + 1))
    return world


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


def no_session() -> SparkSession:
    raise AssertionError("a session was started")


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


@pytest.mark.proof
def test_a_table_that_loses_a_store_is_held_until_its_code_is_mended(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(days=2)
    deliver(world, 1, lines(1))
    deliver(world, 2, [line for line in lines(2) if line["store_id"] != 5])
    right = gold.daily_sales

    def loses_a_store(transactions: DataFrame, products: Any) -> DataFrame:
        return right(transactions, products).where("store_id <> 5")

    with monkeypatch.context() as patch:
        patch.setattr(gold, "daily_sales", loses_a_store)
        steps = steps_of(world.refresh())
    result = steps["gold.daily_sales"]
    assert set(result.published) == {day(2)}
    [finding] = result.held[day(1)]
    assert finding.check == "reconciliation"
    assert finding.examples == ("store_id 5: only in silver.transactions, lines 2, units 2, net 5.00",)
    assert finding.message in result.checks[day(1)].checks[1].sentence
    assert [checked.outcome for checked in result.checks[day(1)].checks] == ["passed", "blocked", "not judged"]
    assert [checked.outcome for checked in result.checks[day(2)].checks] == ["passed", "passed", "not judged"]
    assert holds(world, "gold.daily_sales") == {1: "reconciliation"}
    assert world.rows("gold.daily_sales", str(day(1))) == []

    below = again(world, "gold.sales_month_to_date", [1, 2], session=no_session)
    assert set(below.blocked) == {day(1), day(2)}
    for reason in below.blocked.values():
        assert "gold.daily_sales is held on 2017-01-01 and it has no content yet" in reason
        assert "store_id 5" in reason
        assert "recompute gold.daily_sales for 2017-01-01" in reason

    left = again(world, "gold.daily_sales", [1, 2], session=no_session)
    assert left.up_to_date == {day(2)}
    assert finding.message in left.held[day(1)][0].message
    assert left.held[day(1)][0].check == "reconciliation"
    assert left.checks == {}

    def mended_code(platform: Platform) -> None:
        platform.code_versions["gold.daily_sales"] = "mended"

    mended = again(world, "gold.daily_sales", [1, 2], prepare=mended_code)
    assert set(mended.published) == {day(1), day(2)}
    assert holds(world, "gold.daily_sales") == {}


@pytest.mark.proof
def test_a_halved_day_warns_and_an_empty_one_is_held_until_somebody_accepts_it(prepared: Prepared) -> None:
    """The first of its lake to run waits for days that the gates can compare with."""
    world = prepared(known_days)
    deliver(world, 17, lines(17, LINES // 2))
    deliver(world, 18, [])
    result = up_to_silver(world, [17, 18])
    assert set(result.published) == {day(17)}
    contract, conservation, volume = result.checks[day(17)].checks
    assert (contract.outcome, conservation.outcome, volume.outcome) == ("passed", "passed", "warned")
    assert conservation.numbers == {
        "raw": 5,
        "kept": 5,
        "superseded": 0,
        "voided": 0,
        "quarantined": 0,
        "withdrawn": 0,
    }
    assert volume.numbers["rows"] == 5
    assert volume.numbers["median"] == LINES
    assert volume.numbers["compared_days"] == KNOWN
    with world.open() as platform:
        [record] = platform.ledger.warned(["silver.transactions"], at=platform.current_release().number)
        warned = warned_day(platform, record)
    assert (record.day, [(found.gate, found.found) for found in record.warnings]) == (day(17), [("volume", "5 rows")])
    assert warned is not None
    [command] = withdrawals([warned])
    assert command.startswith("platform-assets undo transactions/2017-01-17/a.jsonl --reason ")
    [finding] = result.held[day(18)]
    assert finding.check == "volume"
    assert "too few rows: 0 rows" in finding.message
    assert holds(world, "silver.transactions") == {18: "volume"}

    with pytest.raises(AcceptError, match="conservation"):
        again(world, "silver.transactions", [18], accept=["conservation", "volume"], session=no_session)
    accepted = again(world, "silver.transactions", [17, 18], accept=["volume"], session=no_session)
    assert accepted.up_to_date == {day(17)}
    assert accepted.published[day(18)].figures["accepted_volume"] == 1
    assert not accepted.published[day(18)].warnings, "somebody has looked at it"
    assert accepted.checks[day(18)].checks[-1].outcome == "warned"
    assert holds(world, "silver.transactions") == {}
    with world.open() as platform:
        assert [json.loads(entry.content)["kind"] for entry in platform.ledger.decision_chain()] == ["acceptance"]


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


@pytest.mark.proof
def test_what_a_correction_changed_is_reported_day_by_day(prepared: Prepared) -> None:
    world = prepared(sixteen_days)
    late = f"{day(3)}T12:00:00Z"
    corrections = lines(1, updated_at=late)
    deliver(
        world,
        3,
        [
            corrections[0] | {"sales_value": "9.99"},
            corrections[1] | {"quantity": 4},
            corrections[2] | {"voided": True},
            sale(999, 1, str(day(1)), store_id=8, household_id=3),
            *lines(2, updated_at=f"{day(2)}T10:05:00Z")[:1],
        ],
        "late.jsonl",
    )
    steps = steps_of(world.refresh())
    assert set(steps["silver.transactions"].published) == {day(1), day(2)}
    [(changed, silver_change)] = steps["silver.transactions"].changes.items()
    assert changed == day(1)
    assert (silver_change.added, silver_change.removed, silver_change.changed) == (1, 1, 2)
    assert silver_change.sums_before["sales_value"] == Decimal("25.00")
    assert silver_change.sums_after["sales_value"] == Decimal("32.49")
    assert (silver_change.sums_before["quantity"], silver_change.sums_after["quantity"]) == (10, 13)
    daily = steps["gold.daily_sales"].changes[day(1)]
    assert (daily.added, daily.removed, daily.changed) == (1, 0, 3)
    assert (daily.sums_before["lines"], daily.sums_after["lines"]) == (10, 10)
    assert (daily.sums_before["net"], daily.sums_after["net"]) == (Decimal("25.00"), Decimal("32.49"))
    assert set(steps["gold.household_28d"].changes) == {day(number) for number in range(1, KNOWN + 1)}


@pytest.mark.proof
def test_rows_that_break_the_contract_or_get_lost_are_named_and_masked(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed with one fault after another."""
    world = make_world(days=2, domains=WINDOWS)
    for number in (1, 2):
        deliver(world, number, lines(number))
    right_silver, right_household = silver.transactions, gold.household_28d

    def loses_one_and_invents_two(transactions: DataFrame) -> DataFrame:
        rows = right_silver(transactions)
        invented = rows.where("basket_id in (103, 104)").withColumn("basket_id", F.col("basket_id") + 900)
        return rows.where("basket_id <> 102").unionByName(invented)

    with monkeypatch.context() as patch:
        patch.setattr(silver, "transactions", loses_one_and_invents_two)
        result = steps_of(world.refresh())["silver.transactions"]
    assert set(result.published) == {day(2)}
    [finding] = result.held[day(1)]
    assert finding.check == "conservation"
    assert finding.examples == (
        "lost: basket_id 102, product_id 1",
        "not expected: basket_id 1003, product_id 1",
        "not expected: basket_id 1004, product_id 1",
    )
    assert set(again(world, "silver.transactions", [1], force=True).published) == {day(1)}

    def repeats_and_forgets(transactions: Any) -> DataFrame:
        rows = right_household(transactions)
        trips = F.when(F.col("household_id") > 8, F.lit(None)).otherwise(F.col("trips"))
        broken = rows.withColumn("trips", trips).unionByName(rows.where("household_id = 4"))
        return broken.where("event_date = date'2017-01-02'").unionByName(rows.where("event_date = date'2017-01-01'"))

    with monkeypatch.context() as patch:
        patch.setattr(gold, "household_28d", repeats_and_forgets)
        result = again(world, "gold.household_28d", [1, 2], force=True)
    assert set(result.published) == {day(1)}
    forgotten, repeated, spend = result.held[day(2)]
    assert (forgotten.check, repeated.check, spend.check) == ("contract", "contract", "reconciliation")
    with world.open() as platform:
        masked = platform.masking.masked
    assert forgotten.examples == tuple(f"household_id {masked(household)}" for household in (9, 10))
    assert repeated.examples == (f"household_id {masked(4)}",)
    assert "spend 10.00, not 5.00 (+5.00)" in spend.message
    assert holds(world, "gold.household_28d") == {2: "contract"}
