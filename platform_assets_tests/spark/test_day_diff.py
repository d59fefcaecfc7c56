"""What a recomputation changed equals what lists of rows say, sums exactly, and failed rows are named by their keys."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Column, Contract, Input, LandingFiles, Rule, same_day
from platform_assets.contracts.table import amounts
from platform_assets.domains.retail.contracts import DAILY_SALES, HOUSEHOLD_28D, SILVER_TRANSACTIONS
from platform_assets.records.differences import EXAMPLES, DayChange, Sum
from platform_assets.spark.compare.profiles import keys_not_as_expected, keys_of_several_rows, keys_without
from platform_assets.spark.compare.row_diff import day_changes, moved_sums
from platform_assets_tests.support.installation import rows_as_frame

A, B, C = (date(2017, 1, day) for day in (1, 2, 3))
CONTRACT = Contract(
    name="gold.t",
    description="",
    owner="",
    columns=(
        Column("k", "long", "Key.", nullable=False),
        Column("at", "timestamp", "Key.", nullable=False),
        Column("n", "long", "Whole."),
        Column("x", "decimal(12,2)", "Money."),
        Column("label", "string", "Text."),
    ),
    key=("k", "at"),
    inputs=(Input("silver.t", same_day()),),
)
SCHEMA = "k long, at timestamp, n long, x decimal(12,2), label string, event_date date"
NOON = datetime(2017, 1, 1, 12, tzinfo=UTC)
MOST = 2**63 - 1


def row(day: date, k: int, n: int | None = 1, x: str | None = "1.00", label: str | None = "a") -> tuple[Any, ...]:
    return (k, NOON, n, None if x is None else Decimal(x), label, day)


def test_changes_are_counted_by_key_and_summed_without_overflow(spark: SparkSession) -> None:
    before = [row(A, 1), row(A, 2), row(A, 3, label=None), row(A, 4), row(B, 1, MOST), row(B, 2, MOST), row(C, 1)]
    after = [
        row(A, 1),
        row(A, 2, x="1.25"),
        row(A, 3, label=""),
        row(A, 5, n=None),
        row(B, 2, MOST),
        row(B, 1, None, None),
    ]
    found = day_changes(rows_as_frame(spark, before, SCHEMA), rows_as_frame(spark, after, SCHEMA), CONTRACT)
    assert found == {
        A: DayChange(1, 1, 2, {"n": 4, "x": Decimal("4.00")}, {"n": 3, "x": Decimal("4.25")}),
        B: DayChange(0, 0, 1, {"n": 2 * MOST, "x": Decimal("2.00")}, {"n": MOST, "x": Decimal("1.00")}),
        C: DayChange(0, 1, 0, {"n": 1, "x": Decimal("1.00")}, {"n": 0, "x": Decimal(0)}),
    }
    assert all(isinstance(change.sums_after["n"], int) for change in found.values())


def test_what_a_correction_changed_is_told_where_amounts_are_too_large_for_a_sum(spark: SparkSession) -> None:
    columns = (CONTRACT.column("k"), Column("x", "decimal(38,2)", "Money."), CONTRACT.column("n"))
    contract = replace(CONTRACT, columns=columns, key=("k",))
    huge = Decimal("900000000000000000000000000000000000.00")
    schema = "k long, x decimal(38,2), n long, event_date date"
    before = rows_as_frame(spark, [(1, huge, 1, A), (2, huge, 1, A)], schema)
    after = rows_as_frame(spark, [(1, huge, 1, A), (2, Decimal("1.00"), 2, A)], schema)
    assert day_changes(before, after, contract) == {A: DayChange(0, 0, 1, {"n": 2}, {"n": 3})}


def test_only_columns_that_measure_are_summed() -> None:
    assert amounts(DAILY_SALES) == ("lines", "baskets", "units", "gross", "discounts", "net")
    assert amounts(HOUSEHOLD_28D) == ("spend", "trips"), "days since the latest trip are declared not additive"
    sums = amounts(SILVER_TRANSACTIONS)
    assert "household_id" not in sums
    assert "store_id" not in sums
    assert "week" not in sums
    assert {"quantity", "net_amount"} <= set(sums)


def test_the_first_keys_of_rows_that_failed_are_named_as_they_are_in_utc(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    rows = [row(A, k, label=None) for k in (9, 10, 1, 2, 3, 4)] + [
        row(A, 2),
        row(B, 7),
        row(C, 8, label=None),
        row(B, 7),
    ]
    frame = rows_as_frame(spark, rows, SCHEMA)
    noon = "2017-01-01 12:00:00"
    named = keys_without(frame, [A, B], "label", CONTRACT.key)
    assert named == {A: [(str(k), noon) for k in (1, 2, 3, 4, 9)]}
    assert len(named[A]) == EXAMPLES
    monkeypatch.undo()
    time.tzset()
    assert keys_of_several_rows(frame, [A, B], CONTRACT.key) == {A: [("2", noon)], B: [("7", noon)]}


def test_keys_lost_and_won_are_told_from_the_newest_good_version(spark: SparkSession) -> None:
    def version(day: date, k: int, at: int, kind: str = "record", n: int = 1) -> tuple[Any, ...]:
        return (k, n, kind, NOON.replace(hour=at), day, False, "a", at, at, day)

    raw = rows_as_frame(
        spark,
        [
            version(A, 1, 1),
            version(A, 2, 1),
            version(A, 2, 2, "void"),
            version(A, 3, 1, "void"),
            version(A, 3, 2),
            version(A, 4, 1),
            version(A, 4, 2, n=-1),
            version(A, 5, 1, n=-1),
            version(A, 6, 1),
            version(A, 6, 2, "tombstone"),
            version(B, 1, 1),
        ],
        "k long, n long, _kind string, at timestamp, _arrival_date date, _void boolean, _file_order string, "
        "_place long, _row_hash long, event_date date",
    ).withColumn("_order_day", F.col("event_date"))
    columns = (Column("k", "long", "Key.", nullable=False), Column("at", "timestamp", "When."))
    source = Contract("raw.t", "", "", columns, ("k",), source=LandingFiles("t"), event_time="at", updated_at="at")
    rules = [Rule("positive", "n > 0", "")]
    stays = [(1, A), (3, A), (4, A)]
    silver = rows_as_frame(spark, [*stays, (1, B)], "k long, event_date date")
    assert keys_not_as_expected(raw, silver, [A, B], source, rules) == ({}, {})
    silver = rows_as_frame(spark, [(1, A), (2, A), (5, A), (6, A), (99, A)], "k long, event_date date")
    lost, won = keys_not_as_expected(raw, silver, [A], source, rules)
    assert lost == {A: [("3",), ("4",)]}
    assert won == {A: [("2",), ("5",), ("6",), ("99",)]}


ONE, TWO, THREE = (date(2017, 1, n) for n in (1, 2, 3))
WIDE = "9" * 27 + "." + "8" * 10


def frame(spark: SparkSession, rows: str, *more: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {rows} AS t(event_date, till, paid, n)").selectExpr("*", *more)


def till(column: str, value: str | None) -> Sum:
    return Sum(column, ("till",), (value,))


def test_sums_that_differ_are_found_exactly(spark: SparkSession) -> None:
    before = frame(
        spark,
        f"""(DATE '2017-01-01', 'a', {WIDE}BD, 9223372036854775807), (DATE '2017-01-01', 'a', null, 1),
            (DATE '2017-01-01', null, 1.0BD, 1), (DATE '2017-01-01', 'same', 7BD, 1),
            (DATE '2017-01-01', 'gone', 5BD, 0), (DATE '2017-01-02', 'a', 1BD, null)""",
    )
    after = frame(
        spark,
        f"""(DATE '2017-01-01', 'a', {WIDE}BD, 9223372036854775807), (DATE '2017-01-01', 'a', 0.0000000001BD, 1),
            (DATE '2017-01-01', null, 2.0BD, 1), (DATE '2017-01-01', 'same', 7BD, 1),
            (DATE '2017-01-01', 'new', null, 4), (DATE '2017-01-02', 'a', 1BD, 3), (DATE '2017-01-03', 'a', 1BD, 1)""",
    )
    found = moved_sums(before, after, ["paid", "n"], ("till",), 10)
    assert found.keys() == {ONE, THREE}, "of the second day there was no n that could have moved"
    assert {each: pair for each, pair in found[ONE].pairs.items() if pair[0] != pair[1]} == {
        till("paid", "a"): (Decimal(WIDE), Decimal(f"{WIDE[:-1]}9")),
        till("paid", None): (Decimal(1), Decimal(2)),
        till("paid", "gone"): (Decimal(5), None),
        till("n", "gone"): (Decimal(0), None),
        till("n", "new"): (None, Decimal(4)),
    }
    assert found[ONE].pairs[till("n", "a")] == (Decimal(2**63), Decimal(2**63))
    assert (found[ONE].keys, found[THREE].keys) == (4, 1)
    assert found[THREE].pairs == {till("paid", "a"): (None, Decimal(1)), till("n", "a"): (None, Decimal(1))}
    assert len(moved_sums(before, after, ["paid"], ("till",), 1)[ONE].pairs) == 1
    assert moved_sums(before, after.drop("till"), ["n"], (), 9)[ONE].pairs == {
        Sum("n", (), ()): (Decimal(2**63 + 2), Decimal(2**63 + 6))
    }


def test_a_column_that_was_added_or_had_no_sum_has_not_moved(spark: SparkSession) -> None:
    rows = "(DATE '2017-01-01', 'a', 1BD, 1), (DATE '2017-01-01', 'b', 1BD, 1)"
    before, after = frame(spark, rows, "'x' AS label"), frame(spark, rows, "2BD AS label", "3BD AS tax")
    assert not moved_sums(before, after, ["paid", "label", "tax"], ("till",), 10)
