"""Spark tells two tables apart exactly as a plain comparison of dictionaries does, through every window."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, LongType

from platform_assets.contracts import (
    Amount,
    Reconciliation,
    Window,
    all_history,
    month_to_date,
    offsets,
    same_day,
    span,
)
from platform_assets.contracts.checks import Tolerance
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.records.differences import EXAMPLES, Difference, Differences
from platform_assets.spark.compare.reconciliation import differences
from platform_assets.spark.compare.row_diff import within_sql
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.installation import rows_as_frame

CALENDAR = Calendar(date(2017, 1, 20), date(2017, 2, 10))
DAYS = tuple(day for day in CALENDAR.days() if day.day % 7)
"""Computed days, with gaps between them."""

Row = tuple[date, int | None, str | None, int | None, Decimal | None]
Name = tuple[int | None, str | None]
Values = tuple[Any, ...]
SCHEMA = "event_date date, k long, j string, n long, x decimal(12,2)"
OURS = "event_date date, k long, j string, rows long, n long, x decimal(16,4), least decimal(12,2), most decimal(12,2)"
SUMS = (
    Amount("rows", "sum(rows)", "count(*)"),
    Amount("n", "sum(n)", "SUM( n )"),
    Amount("x", "sum(x)", "sum(x)"),
)
ENDS = (Amount("least", "min(least)", "min(x)"), Amount("most", "min(most)", "max(x)"))
WINDOWS = [same_day(), span(3), span(1, 2), offsets(-5, -2, 0), month_to_date(), all_history()]


def some_rows(seed: int) -> list[Row]:
    draw = random.Random(seed)
    return [
        (
            draw.choice(CALENDAR.days()),
            draw.choice([None, 1, 2, 30]),
            draw.choice([None, "a", "b"]),
            draw.choice([None, 0, 1, 5, -(2**40)]),
            draw.choice([None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")]),
        )
        for _ in range(90)
    ]


def total(values: Iterable[Any], how: Callable[[list[Any]], Any]) -> Any:
    known = [value for value in values if value is not None]
    return how(known) if known else None


def figures(rows: list[Row]) -> Values:
    ns, xs = [row[3] for row in rows], [row[4] for row in rows]
    return (len(rows), total(ns, sum), total(xs, sum), total(xs, min), total(xs, max))


def right(rows: list[Row], window: Window) -> dict[date, dict[Name, Values]]:
    """What a right transform computes, by day and key."""
    found: dict[date, dict[Name, Values]] = {}
    for day in DAYS:
        read = set(days_read(window, day, CALENDAR))
        by_key: defaultdict[Name, list[Row]] = defaultdict(list)
        for row in rows:
            if row[0] in read:
                by_key[row[1], row[2]].append(row)
        found[day] = {key: figures(group) for key, group in by_key.items()}
    return found


def spoiled(by_day: Mapping[date, Mapping[Name, Values]], seed: int) -> dict[date, dict[Name, Values]]:
    """Some keys lost, some invented, some figures changed, every now and then by nothing but a null."""
    draw = random.Random(seed)
    found = {day: dict(keys) for day, keys in by_day.items()}
    for day in sorted(found)[::2]:
        for key in list(found[day]):
            match draw.randrange(5):
                case 0:
                    del found[day][key]
                case 1:
                    values = list(found[day][key])
                    at = draw.randrange(len(values))
                    values[at] = None if values[at] == 0 else 0 if at < 2 else Decimal("0.00")
                    found[day][key] = tuple(values)
        if draw.randrange(2):
            found[day][77, "new"] = (0, None, None, None, None)
        if draw.randrange(2):
            found[day][78, "new"] = (1, None, None, None, None)
    return found


def plain(ours: Mapping[Name, Values], theirs: Mapping[Name, Values], count: int) -> Differences:
    """Of the first figures; the first three are sums."""

    def comparable(values: Values | None) -> Values:
        values = values or (None,) * count
        return tuple(value or 0 if at < 3 else value for at, value in enumerate(values[:count]))

    keys = ours.keys() | theirs.keys()
    different = {key for key in keys if comparable(ours.get(key)) != comparable(theirs.get(key))}
    missing = {key for key in different if key not in ours}
    extra = {key for key in different if key not in theirs}

    def first(some: set[Name]) -> list[Name]:
        return sorted(some, key=lambda key: [(part is None, part or 0) for part in key])[:EXAMPLES]

    def cut(values: Values | None) -> Values | None:
        return None if values is None else values[:count]

    examples = tuple(
        Difference(tuple(None if part is None else str(part) for part in key), cut(ours.get(key)), cut(theirs.get(key)))
        for kind in (missing, extra, different - missing - extra)
        for key in first(kind)
    )
    kinds = (len(missing), len(extra), len(different) - len(missing) - len(extra))
    return Differences(len(keys), *kinds, examples)


def frame(spark: SparkSession, by_day: Mapping[date, Mapping[Name, Values]]) -> DataFrame:
    rows = [(day, *key, *values) for day, found in by_day.items() for key, values in found.items()]
    return rows_as_frame(spark, rows, OURS)


def compared(*how: Any) -> dict[date, Differences]:
    """What differs, without the figures of whole days."""
    return {day: replace(found, ours=(), theirs=()) for day, found in differences(*how).items()}


def upstream(spark: SparkSession, rows: list[Row], window: Window) -> DataFrame | Windowed:
    read = rows_as_frame(spark, rows, SCHEMA)
    return read.where(F.col("event_date").isin(list(DAYS))) if window == same_day() else Windowed(read, window, DAYS)


@pytest.mark.parametrize(
    "amounts", [pytest.param(SUMS, id="sums"), pytest.param(SUMS + ENDS, id="sums and ends", marks=pytest.mark.proof)]
)
@pytest.mark.parametrize(
    "window",
    [pytest.param(one, marks=() if one == span(1, 2) else pytest.mark.proof) for one in WINDOWS],
    ids=repr,
)
def test_differences_equal_those_of_dictionaries(
    spark: SparkSession, window: Window, amounts: tuple[Amount, ...]
) -> None:
    rows = some_rows(7)
    theirs, read = right(rows, window), upstream(spark, rows, window)
    declared = Reconciliation("silver.t", ("k", "j"), amounts)
    assert differences(frame(spark, theirs), read, declared, DAYS) == {}

    ours = spoiled(theirs, seed=3)
    wanted = {day: plain(ours[day], theirs[day], len(amounts)) for day in DAYS}
    wanted = {day: one for day, one in wanted.items() if one}
    assert 3 <= len(wanted) < len(DAYS)
    assert compared(frame(spark, ours), read, declared, DAYS) == wanted


def test_a_day_can_be_compared_as_a_whole(spark: SparkSession) -> None:
    day, other, third = DAYS[:3]
    read = rows_as_frame(spark, [(day, 1, "a", 1, None), (other, 1, "a", 1, Decimal("1.00"))], SCHEMA)
    ours = frame(spark, {day: {(9, "z"): (1, 1, Decimal("0.00"), None, None)}})
    declared = Reconciliation("silver.t", (), (SUMS[0], SUMS[2]))
    lost = Differences(1, missing=1, examples=(Difference((), None, (1, Decimal("1.00"))),))
    assert compared(ours, read, declared, [day, other, third]) == {other: lost}
    declared = replace(declared, amounts=(*declared.amounts, ENDS[0]))
    lost = Differences(1, missing=1, examples=(Difference((), None, (1, Decimal("1.00"), Decimal("1.00"))),))
    assert compared(ours, read, declared, [day, other, third]) == {other: lost}


def test_a_tolerance_is_for_each_figure_and_both_sums_of_the_day_are_told(spark: SparkSession) -> None:
    day = DAYS[0]
    read = rows_as_frame(spark, [(day, k, "a", 1, Decimal("1.00")) for k in (1, 2, 3)], SCHEMA)
    ours = {(1, "a"): "1.00", (2, "a"): "1.05", (3, "a"): "1.50"}
    mine = frame(spark, {day: {key: (1, 1, Decimal(x), None, None) for key, x in ours.items()}})
    for tolerance, unequal in {"": 2, "0.05": 1, "5 %": 1, "0.5": 0}.items():
        declared = Reconciliation("silver.t", ("k", "j"), SUMS, tolerance)
        found = differences(mine, read, declared, [day])
        assert {day: one.unequal for day, one in found.items()} == ({day: unequal} if unequal else {})
        for one in found.values():
            assert (one.ours, one.theirs) == ((3, 3, Decimal("3.55")), (3, 3, Decimal("3.00")))


WHOLE, CENTS, TENTH, FINE = (DecimalType(38, scale) for scale in (0, 2, 10, 18))
WEI, MANY = "123456789012.000000000000000001", "9" * 34


@pytest.mark.parametrize(
    ("left", "right", "tolerance", "agrees"),
    [
        (("24", WHOLE), ("25", WHOLE), "0.6", False),
        (("24", WHOLE), ("25", WHOLE), "0.9999999999", False),
        (("24", WHOLE), ("25", WHOLE), "1", True),
        (("25", WHOLE), ("26", WHOLE), "3 %", False),
        (("24", WHOLE), ("25", WHOLE), "4 %", True),
        (("25", LongType()), ("26", WHOLE), "3 %, 0.5", False),
        (("1.00", CENTS), ("1.01", CENTS), "0.0051", False),
        (("1.00", CENTS), ("1.01", CENTS), "0.01", True),
        (("0.0000000001", TENTH), ("0.0000000002", TENTH), "0.00000001 %", False),
        (("123456789012", FINE), (WEI, FINE), "", False),
        (("123456789012", FINE), (WEI, FINE), "0.0000000001", True),
        (("123456789012", FINE), (WEI, FINE), "0.0000000001 %", False),
        (("24", WHOLE), ("24.4", TENTH), "", False),
        (("24", WHOLE), ("24.0", TENTH), "", True),
        (("24", WHOLE), ("24.4", TENTH), "0.3", False),
        (("24", WHOLE), ("24.4", TENTH), "0.4", True),
        (("24", WHOLE), (MANY, WHOLE), "99999999999999999999", False),
        ((MANY, WHOLE), (MANY, WHOLE), "0.000001 %", True),
        (("1.5", DoubleType()), ("1.6", CENTS), "0.2", True),
        (("24", WHOLE), ("NULL", WHOLE), "100 %, 30", False),
    ],
)
def test_a_tolerance_is_compared_without_rounding(
    spark: SparkSession, left: tuple[str, DataType], right: tuple[str, DataType], tolerance: str, agrees: bool
) -> None:
    (mine, ours), (other, theirs) = (
        (f"CAST({value} AS {type_.simpleString()})", type_) for value, type_ in (left, right)
    )
    allowed = Tolerance.parse(tolerance)
    judged = within_sql(mine, other, allowed, (ours, theirs)), within_sql(other, mine, allowed, (theirs, ours))
    assert spark.sql(f"SELECT {', '.join(judged)}").first() == (agrees, agrees)


def test_figures_of_other_digits_are_reconciled_without_rounding(spark: SparkSession) -> None:
    day = DAYS[0]
    ours = rows_as_frame(spark, [(day, Decimal(24), Decimal(0))], "event_date date, x decimal(28,0), z decimal(30,30)")
    theirs = rows_as_frame(spark, [(day, Decimal("24.4"), None)], "event_date date, x decimal(28,10), z decimal(30,30)")
    for tolerance, days in {"": {day}, "0.3": {day}, "0.4": set()}.items():
        declared = Reconciliation("silver.t", (), (Amount("x", "sum(x)", "sum(x)"), Amount("z", "sum(z)", "sum(z)")))
        assert set(differences(ours, theirs, replace(declared, tolerance=tolerance), [day])) == days
