"""Sums of days are compared exactly, whatever is null, new, gone or of another type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

from platform_assets.records.differences import Sum
from platform_assets.spark.compare.row_diff import moved_sums

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
