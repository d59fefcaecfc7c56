"""A window of chosen days reads and reaches only these, and a table without a key has one row a day, everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.engine.day_contents import files_at
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.lineage.provenance import explain
from platform_assets.operations.stages.compare import columns_beside, compared
from platform_assets.operations.verify import verify
from platform_assets.planning.selection import Selection
from platform_assets.planning.windows import Read
from platform_assets.spark.compare.row_diff import disagreements
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets_tests.support.own_domain import PACKAGE, forget, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World

DAYS = 8
WEEK = 'inputs=(Input("silver.sales", span(6)),))'
WEEK_BEFORE = """\
inputs=(Input("silver.sales", offsets(-3, 0)),),
    reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),))
SINCE, RATE = Column("since", "date", "From when on.", nullable=False), Column("rate", "long", "Percent of tax.")
RAW_RATES = Contract("raw.rates", "As delivered.", "me", (SINCE, RATE), ("since",), source=LandingFiles("rates"),
    event_time="since", delivers="on change")
RATES = Contract("silver.rates", "One at a time.", "me", (SINCE, RATE), (), inputs=(Input("raw.rates", same_day()),))
TAKINGS = Contract("gold.takings", "All tills.", "me", (Column("paid", "decimal(18,2)", "Dollars."), RATE), (),
    inputs=(Input("silver.sales", same_day()), Input("silver.rates", as_of())),
    reconciles=(Reconciliation("silver.sales", (), (Amount("paid", "sum(paid)", "sum(paid)"),)),))"""
CONTRACTS = (
    ("same_day, span,", "same_day, offsets,"),
    (WEEK, WEEK_BEFORE),
    ("GOLD, WEEK)", "WEEK, RAW_RATES, RATES, TAKINGS)"),
)
TAKINGS = """\
def takings(sales, rates):
    paid = F.sum("paid").cast("decimal(18,2)").alias("paid")
    return rates.as_of_join(sales.groupBy("event_date").agg(paid)).select("event_date", "paid", "rate")


def tills(sales):
"""
ONE_ROW = ("def tills(sales):\n", TAKINGS)
ONE_BY_TILL = ('sales.groupBy("event_date").agg(paid)', 'sales.groupBy("event_date", "till").agg(paid)')
SILVER = ("def sales(sales):", "def rates(rates):\n    return rates\n\n\ndef sales(sales):")


def nth(number: int) -> date:
    return date(2017, 1, number)


def paid(day: int, till: int) -> Decimal:
    return Decimal(10 * day + till)


@pytest.fixture
def world(make_world: MakeWorld, tmp_path: Path) -> Iterator[World]:
    with importable(write_domain(tmp_path / "code", contracts=CONTRACTS, silver=(SILVER,), gold=(ONE_ROW,))):
        world = make_world(days=DAYS, domains=PACKAGE)
        for day, rate in ((1, 19), (4, 16)):
            world.deliver_rows("rates", str(nth(day)), "r.jsonl", [{"since": str(nth(day)), "rate": rate}])
        for day in range(1, DAYS + 1):
            sales = [(day, till, paid(day, till)) for till in (1, 2)]
            world.deliver_rows("sales", str(nth(day)), "a.jsonl", map(as_delivered, sales))
        world.refresh()
        yield world


def as_delivered(sale: tuple[int, int, Decimal]) -> dict[str, object]:
    day, till, amount = sale
    return {"till": till, "at": f"{nth(day)}T10:00:00Z", "paid": str(amount)}


@pytest.mark.proof
def test_a_changed_day_reaches_only_the_days_that_chose_it_and_a_day_of_one_row_is_compared_with_itself(
    world: World, tmp_path: Path
) -> None:
    """A correction, a verification, and at last code that makes a second row of a day that has one."""
    with world.open() as platform:
        before = files_at(platform.lake, "gold.takings", platform.current_release().versions["gold.takings"])
    world.deliver_rows("sales", str(nth(8)), "later.jsonl", [as_delivered((2, 1, Decimal(99)))])
    steps = {step.table: step for step in world.refresh().steps}
    sales = {(day, till): paid(day, till) for day in range(1, DAYS + 1) for till in (1, 2)} | {(2, 1): Decimal(99)}
    right = {(day, till): sales[day, till] + sales.get((day - 3, till), 0) for day, till in sales}
    assert {(row["event_date"].day, row["till"]): row["paid"] for row in world.rows("gold.week")} == right
    assert {day.day for day in steps["gold.week"].published} == {2, 5}
    assert steps["gold.week"].read == {"silver.sales": Read(days=2, files=2)}

    assert {row["event_date"].day: row["rate"] for row in world.rows("gold.takings")} == {
        day: 19 if day < 4 else 16 for day in range(1, DAYS + 1)
    }
    with world.open() as platform:
        week, takings = platform.catalogue["gold.week"], platform.catalogue["gold.takings"]
        origin = explain(platform, week, nth(5)).origin
        assert origin is not None
        [read] = origin.inputs
        assert (read.window, {day.day for day in read.days}) == ("offsets(-3, 0)", {2, 5})
        with private_folder(platform.lake) as folder:
            changed = Selection(frozenset({week.name, takings.name}), frozenset({nth(2), nth(5)}))
            verified = verify(platform, lambda: world.spark, changed, folder)
        assert {day.verdict for table in verified for day in table.days} == {"equal"}

        after = files_at(platform.lake, "gold.takings", platform.current_release().versions["gold.takings"])
        change = steps["gold.takings"].changes[nth(2)]
        assert (change.added, change.removed, change.changed) == (0, 0, 1)
        sides = (before[nth(2)], after[nth(2)])
        beside = compared(platform.lake, takings.name, nth(2), takings.row_key, ["paid"], sides)
        assert (beside.added, beside.removed, beside.changed) == (0, 0, 1)
        columns, [example] = columns_beside(
            platform.lake, takings, ({nth(2): sides[0]}, {nth(2): sides[1]}), platform.masking, 5
        )
        assert (columns[0].changed, example.key) == (1, "event_date 2017-01-02")
        assert example.values == {"paid": (paid(2, 1) + paid(2, 2), 99 + paid(2, 2))}
        path, schema = platform.lake.table_path(takings.name), spark_schema(takings)
        then, now = (read_days(world.spark, path, {nth(2): side}, schema, [(nth(2), nth(2))]) for side in sides)
        [found] = disagreements(then, now, takings)
        assert (found.key, found.columns, found.rows) == (("2017-01-02",), ("paid",), (1, 1))

    forget()
    gold_twice = (ONE_ROW, ONE_BY_TILL)
    with importable(write_domain(tmp_path / "wrong", contracts=CONTRACTS, silver=(SILVER,), gold=gold_twice)):
        [step] = world.recompute(["gold.takings"], [nth(3)]).steps
    [finding] = step.held[nth(3)]
    assert finding.message == (
        "gold.takings on 2017-01-03: 1 key (event_date) with more than one row; first event_date 2017-01-03"
    )
    assert world.rows("gold.takings", str(nth(3))) == [
        {"paid": paid(3, 1) + paid(3, 2), "rate": 19, "event_date": nth(3)}
    ]


@pytest.mark.proof
def test_a_value_from_before_the_calendar_corrected_to_missing_leaves_what_was_valid_before_it(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    known = 'rules=(Rule("known", "rate >= 0", "Not known.", breach="void"),), inputs=(Input("raw.rates"'
    contracts = (*CONTRACTS, ('inputs=(Input("raw.rates"', known))
    with importable(write_domain(tmp_path / "code", contracts=contracts, silver=(SILVER,), gold=(ONE_ROW,))):
        world = make_world(days=2, domains=PACKAGE)
        for day, rates in ((1, {"2016-11-01": 19, "2016-12-01": 21}), (2, {"2016-12-01": -1})):
            rows = [{"since": since, "rate": rate} for since, rate in rates.items()]
            world.deliver_rows("rates", str(nth(day)), "r.jsonl", rows)
            world.deliver_rows("sales", str(nth(day)), "a.jsonl", [as_delivered((day, 1, paid(day, 1)))])
        world.refresh()
        assert [row["rate"] for row in world.rows("gold.takings")] == [19, 19]
