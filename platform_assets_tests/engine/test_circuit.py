"""A table whose code fails stops for everybody, is tried in a stage with new input, and closes by itself once right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from platform_assets.domains.retail.transforms import silver
from platform_assets.engine.circuits import circuits
from platform_assets.engine.pending import due_tries, waiting
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult, recompute_step, refresh
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.planning.circuit import CircuitState
from platform_assets.planning.steps import Step
from platform_assets.spark.tables.failures import TransformError
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, sale

SILVER, GOLD = "silver.transactions", "gold.household_28d"
DAY = date(2017, 1, 2)
STOPPED = f"the circuit of {SILVER} is open since"


def correct(world: World, number: int) -> None:
    rows: list[Mapping[str, Any]] = [
        sale(2, 1, str(DAY), sales_value=f"{number}.00", updated_at=f"2017-01-02T1{number}:00:00Z")
    ]
    world.deliver_rows("transactions", "2017-01-03", f"correction-{number}.jsonl", rows)


def run(world: World, name: str, *, spark: bool = True) -> RefreshResult:
    with world.open() as platform:
        return refresh(platform, (lambda: world.spark) if spark else no_session, Author(name, "a test"))


def state(world: World) -> CircuitState:
    with world.open() as platform:
        return circuits(platform).get(SILVER, CircuitState())


def test_a_table_whose_code_fails_is_stopped_tried_with_new_input_and_closed_by_the_run_that_finds_it_right(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four refreshes on one lake: the circuit opens, nobody tries in vain, and new input with mended code closes it."""
    world = lakes.new(days=3, domains="platform_assets_tests.support.domains.breaking")
    for number in (1, 2, 3):
        day = f"2017-01-0{number}"
        world.deliver_rows("transactions", day, "a.jsonl", [sale(number, 1, day)])
    run(world, "first")
    before = world.digests()

    def broken(transactions: DataFrame) -> DataFrame:
        raise ValueError("a typo")

    with monkeypatch.context() as patch:
        patch.setattr(silver, "transactions", broken)
        correct(world, 1)
        with pytest.raises(TransformError, match="a typo"):
            run(world, "second")
        opened = state(world)
        assert (opened.state, opened.failing[-1].day) == ("open", DAY)
        assert opened.why.startswith("code: silver.transactions cannot be computed by its transform")

        # Nobody tries it in vain: no session starts, and what is made from it waits by name.
        left = run(world, "third", spark=False)
        assert [reason.partition(" 2")[0] for reason in left.stopped] == [STOPPED]
        [step] = left.steps
        assert step.table == SILVER
        assert STOPPED in step.blocked[DAY]
        with world.open() as platform:
            assert waiting(platform, 10).stale == {}, "so no sensor asks for a run"
            assert due_tries(platform) == {}
            for table in (SILVER, GOLD):
                author = Author("by force", "a test")
                forced = recompute_step(platform, no_session, Step(table, (DAY,)), author, force=True)
                assert STOPPED in forced.blocked[DAY]
    assert {name: days for name, days in world.digests().items() if not name.startswith("raw.")} == {
        name: days for name, days in before.items() if not name.startswith("raw.")
    }

    correct(world, 2)
    right = run(world, "fourth")
    assert right.stopped == ()
    assert {step.table: sorted(step.published) for step in right.steps} == {
        SILVER: [DAY],
        GOLD: [DAY, date(2017, 1, 3)],
    }
    closed = state(world)
    assert closed.state == "closed"
    assert [change.state for change in closed.changes] == ["open", "closed"]
    assert [str(row["sales_value"]) for row in world.rows(SILVER, str(DAY))] == ["2.00"]
    with world.open() as platform:
        path = platform.lake.table_path(SILVER)
        live = {file.path.partition("/")[0] for files in live_files(path).values() for file in files}
        assert {folder.name for folder in path.folders()} - {"_delta_log"} == live, "the stages of tries are gone"


@pytest.mark.proof
def test_a_try_computes_the_days_that_records_tie_to_the_one_that_failed(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes: both days, a move between them that is held with a broken promise, and a correction."""
    world = lakes.new(days=3, domains="platform_assets_tests.support.domains.breaking_tills")
    world.deliver_rows("transactions", "2017-01-02", "a.jsonl", [sale(n, 1, str(DAY)) for n in (2, 12)])
    for day in ("2017-01-01", "2017-01-03"):
        world.deliver_rows("transactions", day, "a.jsonl", [sale(int(day[-1]), 1, day)])
    run(world, "first")

    once = silver.transactions

    def twice(transactions: DataFrame) -> DataFrame:
        rows = once(transactions)
        return rows.union(rows.where(f"event_date = DATE'{DAY}'"))

    with monkeypatch.context() as patch:
        patch.setattr(silver, "transactions", twice)
        moved = sale(12, 1, "2017-01-03", updated_at="2017-01-03T12:00:00Z")
        world.deliver_rows("transactions", "2017-01-03", "moved.jsonl", [moved])
        run(world, "second")
        opened = state(world)
        assert (opened.state, opened.failing[-1].day) == ("open", DAY)
        with world.open() as platform:
            assert {hold.day for hold in platform.ledger.holds(SILVER)} == {DAY, date(2017, 1, 3)}
    correct(world, 1)
    right = run(world, "third")
    assert state(world).state == "closed"
    assert {day for step in right.steps for day in step.published} == {DAY, date(2017, 1, 3)}
    assert sorted((row["basket_id"], row["event_date"].day) for row in world.rows(SILVER)) == [
        (1, 1),
        (2, 2),
        (3, 3),
        (12, 3),
    ]


OWN = (
    ("Reconciliation, Rule", "Circuit, Reconciliation, Rule"),
    ("reconciles=(", "circuit=Circuit(failures=(2, 2)), reconciles=("),
)
WEEK = (
    "return tills(sales.per_day())",
    'return sales.per_day().groupBy("event_date", "till").agg(F.sum("paid").cast("decimal(18,2)").alias("paid"))',
)
BREAKS = ("def tills(sales):\n", 'def tills(sales):\n    raise ValueError("a typo")\n')


@pytest.mark.proof
def test_code_that_fails_before_a_row_is_read_opens_the_circuit_too_and_the_other_tables_go_on(lakes: Lakes) -> None:
    """Five refreshes: one that is right, two that open the circuit, one past it, and one that closes it."""
    world = lakes.new(days=3, domains=PACKAGE)
    code = world.settings.state.parent / "typo"

    def refreshed(day: int, name: str, *gold: tuple[str, str]) -> RefreshResult:
        world.deliver_rows(
            "sales", f"2017-01-0{day}", "a.jsonl", [{"till": 1, "at": f"2017-01-0{day}T10:00:00Z", "paid": "1"}]
        )
        with importable(write_domain(code, contracts=OWN, gold=(*gold, WEEK))):
            return run(world, name)

    refreshed(1, "first")
    for name in ("second", "third"):
        with pytest.raises(
            TransformError, match=r"a typo(?s:.*)no day of any.*`platform-assets admin breaker TABLE --open"
        ):
            refreshed(2, name, BREAKS)
    left = refreshed(2, "fourth", BREAKS)
    assert [reason.partition(" is open")[0] for reason in left.stopped] == ["the circuit of gold.tills"]
    assert {step.table: sorted(step.published) for step in left.steps if step.published} == {
        table: [DAY] for table in ("silver.sales", "gold.week")
    }
    right = refreshed(2, "fifth")
    assert not right.stopped
    assert [(step.table, sorted(step.published)) for step in right.steps] == [("gold.tills", [DAY])]
