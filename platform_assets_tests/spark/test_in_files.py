"""Few rows looked at in their files give the very figures that Spark gives, over values that engines differ in."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Amount, Column, Contract, Input, Reconciliation, same_day, span
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import DataFile
from platform_assets.spark.compare import in_files
from platform_assets.spark.compare.in_files import FileRows, at_hand, changes, contents, repeated_keys, staged_at_hand
from platform_assets.spark.compare.profiles import profile, profile_few
from platform_assets.spark.compare.reconciliation import days_in_files, differences
from platform_assets.spark.compare.row_diff import day_changes
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import schema_of
from platform_assets.spark.tables.staging import stage
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.installation import rows_as_frame

A, B, C = (date(2017, 1, day) for day in (1, 2, 3))
TYPES = {
    "k": "long", "flag": "boolean", "n": "int", "l": "long", "day": "date", "at": "timestamp", "ratio": "double",
    "name": "string", "money": "decimal(12,2)", "part": "decimal(18,18)", "wide": "decimal(38,10)",
    "huge": "decimal(28,0)",
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "flag": [True, False, None],
    "n": [0, -1, 2**31 - 1, -(2**31), None],
    "l": [0, -1, 2**63 - 1, -(2**63), None],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None],
    "at": [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), None],
    "ratio": [float("nan"), float("inf"), -0.0, 0.0, 5e-324, -1.5, None],
    "name": ["", "a", "é" * 2, "x" * 7, "x" * 8, "x" * 31, "x" * 32, "ß" * 40, "NULL", "\x00", None],
    "money": [Decimal("0.00"), Decimal("-9999999999.99"), Decimal("9999999999.99"), None],
    "part": [Decimal("0." + "9" * 18), Decimal("-0." + "0" * 17 + "1"), None],
    "wide": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-1." + "0" * 10), Decimal("-0.0000000128"), None],
    "huge": [Decimal("9" * 28), Decimal("-" + "9" * 28), Decimal(-128), Decimal(255), Decimal(0), None],
}
SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in {**TYPES, "event_date": "date"}.items())
CONTRACT = Contract(
    name="gold.t",
    description="",
    owner="",
    columns=tuple(
        Column(name, type_, "", nullable=name not in ("k", "name"), additive=name != "wide")
        for name, type_ in TYPES.items()
    ),
    key=("k", "name"),
    inputs=(Input("silver.t", same_day()),),
)


def rows(shift: int, days: tuple[date, ...] = (A, B), count: int = 77) -> list[tuple[Any, ...]]:
    """Rows whose columns go round their values, each at its own pace."""
    found = []
    for day in days:
        for k in range(count):
            values = [each[(k + shift * (k % 5 == 0)) % len(each)] for each in VALUES.values()]
            values[list(VALUES).index("name")] = VALUES["name"][k % 11]
            found.append((k if k % 13 else None, *values, day))
    return found


def staged(spark: SparkSession, folder: Path, some: list[tuple[Any, ...]], schema: str = SCHEMA) -> Location:
    """A stage with some rows."""
    place = located(folder / "live" / "stage")
    stage(rows_as_frame(spark, some, schema), place)
    return place


def both(spark: SparkSession, place: Location) -> tuple[DataFrame, FileRows]:
    """Rows of a stage as Spark and as DuckDB have them."""
    few = staged_at_hand(spark, place)
    assert few is not None
    return read_staged(spark, place), few


def test_digests_and_nulls_of_files_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame, few = both(spark, staged(spark, tmp_path, rows(0) + rows(3, (C,), 1)))
    for key in (("k",), ("k", "at", "huge"), ("name", "flag", "wide", "day"), ("ratio", "k")):
        by_spark = profile(frame, list(TYPES), key)
        assert set(by_spark) == {A, B, C}
        assert profile(frame, list(TYPES), key, few=few) == by_spark
        assert profile_few(few, frame.schema, list(TYPES), key) == (None if "ratio" in key else by_spark)
    assert profile(frame, (), ("k",), few=few)[A].repeated_keys == 1, "rows without a value have one key"


def test_what_changed_is_the_same_to_both(spark: SparkSession, tmp_path: Path) -> None:
    before = staged(spark, tmp_path / "before", rows(0) + rows(0, (C,), 3))
    after = staged(spark, tmp_path / "after", rows(1)[:-9])
    (old, old_few), (new, new_few) = both(spark, before), both(spark, after)
    found, right = changes(old_few, new_few, CONTRACT), day_changes(old, new, CONTRACT)
    assert found is not None
    assert {day: str(change) for day, change in found.items()} == {day: str(change) for day, change in right.items()}
    assert right[A].changed
    assert (right[B].removed, right[C].removed) == (9, 3)
    assert right[A].sums_before["huge"] != right[A].sums_after["huge"]


OURS = "k long, name string, lines long, n long, money decimal(16,4), event_date date"
AMOUNTS = (
    Amount("lines", "sum(lines)", "count(1)"),
    Amount("n", "sum(n)", "sum( n )"),
    Amount("money", "sum(money)", "sum(money)"),
)


@pytest.mark.parametrize("before", [0, 1])
def test_days_whose_figures_agree_are_told_without_spark(spark: SparkSession, tmp_path: Path, before: int) -> None:
    theirs, their_few = both(spark, staged(spark, tmp_path / "theirs", rows(0)))
    given: DataFrame | Windowed = Windowed(theirs, span(before), [A, B]) if before else theirs
    daily = given.per_day() if isinstance(given, Windowed) else given
    figures = ["count(1) AS lines", "sum(n) AS n", "CAST(sum(money) AS decimal(16,4)) AS money"]
    by_key = daily.groupBy("k", "name", "event_date").agg(*map(F.expr, figures))
    some = [tuple(row) for row in by_key.select("k", "name", "lines", "n", "money", "event_date").collect()]
    declared = Reconciliation("silver.t", ("k", "name"), AMOUNTS)
    frame, few = both(spark, staged(spark, tmp_path / "ours", some, OURS))
    assert days_in_files((few, their_few), frame.schema, given, declared, [A, B]) == set()
    at = next(n for n, row in enumerate(some) if row[-1] == B and row[4] is not None)
    wrong = [(*row[:4], row[4] + Decimal("0.01"), row[5]) if n == at else row for n, row in enumerate(some)]
    frame, few = both(spark, staged(spark, tmp_path / "wrong", wrong, OURS))
    assert days_in_files((few, their_few), frame.schema, given, declared, [A, B]) == {B}
    assert differences(frame, given, declared, [A, B])[B].examples


@pytest.mark.parametrize("ours", ["1.00", "1L", "-0.01", "CAST(NULL AS decimal(18,2))"])
def test_no_digit_is_rounded_away_where_one_side_has_more_of_them(
    spark: SparkSession, tmp_path: Path, ours: str
) -> None:
    """DuckDB brings sums of decimals of two scales to one by rounding."""
    declared = Reconciliation("silver.t", ("k",), (Amount("n", "sum(n)", "sum(n)"),))

    def side(name: str, *values: str) -> tuple[DataFrame, FileRows]:
        place = located(tmp_path / name / "live" / "stage")
        days = zip(values, (A, B), strict=True)
        query = " UNION ALL ".join(f"SELECT 1L AS k, {n} AS n, DATE '{day}' AS event_date" for n, day in days)
        stage(spark.sql(query), place)
        return both(spark, place)

    mine, few = side("ours", ours, ours)
    exact = f"CAST(coalesce({ours}, 0) AS decimal(28,4))"
    theirs, their_few = side("theirs", f"CAST({exact} + 0.0040 AS decimal(28,4))", exact)
    assert days_in_files((few, their_few), mine.schema, theirs, declared, [A, B]) == {A}
    assert set(differences(mine, theirs, declared, [A, B])) == {A}


def test_a_key_in_two_files_of_a_day_is_there_twice_whether_or_not_it_may_be_null(tmp_path: Path) -> None:
    """As those of rows that were computed, and of rows that were carried over."""
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    files: dict[date, list[DataFile]] = {A: [], B: []}
    for number, (day, keys) in enumerate([(A, [1, 2]), (A, [3, 1]), (B, [1]), (B, [2])]):
        path = tmp_path / f"event_date={day}" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"k": keys}).cast(strict) if number % 2 else pa.table({"k": keys}), path)
        files[day].append(DataFile(path=f"{path.parent.name}/{path.name}", size=9, modified_ms=0, stats="{}"))
    few = FileRows(located(tmp_path), files)
    assert repeated_keys(few, ["k"], schema_of(k="long")) == {A: 1}
    assert repeated_keys(few, ["k", "gone"], schema_of(k="long", gone="long")) is None
    assert repeated_keys(few, ["k"], schema_of(k="double")) is None
    (tmp_path / files[B][0].path).write_bytes(b"PAR1 or not")
    assert repeated_keys(few, ["k"], schema_of(k="long")) is None
    with pytest.raises(DamagedTableError, match="cannot be read"):
        contents(few, schema_of(k="long"))


def test_many_rows_and_expressions_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, few = both(spark, staged(spark, tmp_path, rows(0)))
    for figure in ("sum(n + 1L)", "sum(ratio)", "count(distinct k)", "max(n)"):
        declared = Reconciliation("silver.t", ("k",), (Amount("n", figure, figure),))
        assert days_in_files((few, few), frame.schema, frame, declared, [A, B]) is None
    monkeypatch.setattr(in_files, "MOST_BYTES", 100)
    assert at_hand(spark, few.folder, few.files) is None
