"""Rows of every kind of rule, which sees what was delivered, on the day of the event, and nothing else."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Rule, compare, exists, in_range, length, matches, not_null, one_of, unique
from platform_assets.contracts.kinds import KINDS, Kind
from platform_assets.contracts.rules import RuleCount
from platform_assets.spark.compare.profiles import Neighbours, breaking_beside_others, profile
from platform_assets.spark.raw.versions import keeps, with_broken_rules, with_verdict
from platform_assets.spark.windows import History

DAY, NEXT = date(2017, 1, 5), date(2017, 1, 6)


SCHEMA = "n long, a decimal(8,2), x double, t string, d date, at timestamp, `order` long, event_date date"


MOMENT = datetime(2017, 1, 5, 10, tzinfo=UTC)


def row(**values: Any) -> tuple[Any, ...]:
    names = ("n", "a", "x", "t", "d", "at", "order")
    return (*(values.get(name) for name in names), values.get("day", DAY))


CASES: list[tuple[Kind | str, str, list[Any], list[Any]]] = [
    (not_null("n"), "n", [0, -1], [None]),
    (in_range("n", 1, 3), "n", [1, 3], [0, 4, None]),
    (in_range("a", Decimal("0.5")), "a", [Decimal("0.50")], [Decimal("0.49"), None]),
    (in_range("x", 0), "x", [0.0, 1e300], [-0.1, float("nan"), None]),
    (in_range("x", most=0.5), "x", [0.5, -1.0], [0.6, float("nan"), None]),
    (in_range("d", date(2017, 1, 1), DAY), "d", [DAY, date(2017, 1, 1)], [NEXT, None]),
    (in_range("at", MOMENT), "at", [MOMENT], [datetime(2017, 1, 5, 9, 59, 59, 999999, tzinfo=UTC), None]),
    (one_of("t", "a", "it's", "back\\slash"), "t", ["a", "it's", "back\\slash"], ["A", "", None]),
    (matches("t", r"\d{2}|x"), "t", ["12", "x"], ["123", "12\n", "ax", "", None]),
    (length("t", 1, 3), "t", ["a", "äöü"], ["", "abcd", None]),
    (length("t", most=1), "t", ["", "a"], ["ab", None]),
    (compare("n", "<=", "order"), "n", [1, 2], [3, None]),
    (in_range("order", 2, 2), "order", [2], [1, None]),
    ("n % 2 = 0 -- even", "n", [0, 2], [1, None]),
]


@pytest.mark.parametrize(("kind", "column", "good", "bad"), CASES, ids=lambda case: str(getattr(case, "text", ""))[:30])
def test_rows_that_keep_a_rule_rows_that_break_it_and_nulls_which_always_do(
    spark: SparkSession, kind: Kind | str, column: str, good: list[Any], bad: list[Any]
) -> None:
    others = {"n": 1, "order": 2} if column == "n" else {}
    values = [*good, *bad]
    left_out = row(**{**others, column: bad[0], "day": NEXT})
    rows = spark.createDataFrame([*(row(**{**others, column: value}) for value in values), left_out], SCHEMA)
    rule, filtered = Rule("r", kind, "A rule."), Rule("f", kind, "A rule.", where=f"event_date = date'{DAY}'")
    assert [kept for (kept,) in rows.select(keeps(rule)).collect()] == [value in good for value in values] + [False]
    found = profile(rows, (), (), rules=[rule, filtered])
    assert found[DAY].rules == dict.fromkeys("rf", RuleCount(len(bad), len(values)))
    assert found[NEXT].rules == {"r": RuleCount(1, 1), "f": RuleCount(0, 0)}


def test_every_kind_has_a_case() -> None:
    beside_others = {"unique", "exists"}
    assert {kind.name for kind, *_ in CASES if isinstance(kind, Kind)} | beside_others == {
        each.__name__ for each in KINDS
    }


def test_rows_that_are_repeated_within_a_day_or_near_it_and_nulls(spark: SparkSession) -> None:
    values = [(1, "a", DAY), (1, "a", DAY), (1, "b", DAY), (None, "a", DAY), (1, "a", NEXT), (2, "c", NEXT)]
    rows = spark.createDataFrame([row(n=n, t=t, day=day) for n, t, day in values], SCHEMA)
    others = spark.createDataFrame(
        [row(n=2, t="c", day=date(2017, 1, 9)), row(n=1, t="b", day=date(2017, 1, 10))], SCHEMA
    )
    in_a_day, without_b = (
        Rule("r", unique("n", "t"), "", severity="warn"),
        Rule("f", unique("n"), "", severity="warn", where="t <> 'b'"),
    )
    assert {day: found.rules["r"] for day, found in profile(rows, (), (), rules=[in_a_day]).items()} == {
        DAY: RuleCount(1, 4),
        NEXT: RuleCount(0, 2),
    }
    assert breaking_beside_others(in_a_day, rows, None) == {DAY: 1}
    assert breaking_beside_others(without_b, rows, None) == {DAY: 1}
    near = Rule("w", unique("n", "t", within="window"), "", severity="warn")
    assert breaking_beside_others(near, rows, Neighbours(others, 4)) == {DAY: 2, NEXT: 2}
    assert breaking_beside_others(near, rows, Neighbours(others, 0)) == {DAY: 1}


def test_rows_whose_reference_is_not_there_on_their_day(spark: SparkSession) -> None:
    """The thing 1 is called a, and from the next day b; 2 is there from the next day on only."""
    history = spark.createDataFrame(
        [(1, "a", date(2017, 1, 1)), (1, "b", NEXT), (2, "c", NEXT)], "id long, name string, event_date date"
    )
    reference = History(history, ("id",))
    values = [(1, "a", DAY), (2, "c", DAY), (9, "a", DAY), (9, "a", DAY), (None, "b", DAY), (2, "a", NEXT)]
    rows = spark.createDataFrame([row(n=n, t=t, day=day) for n, t, day in values], SCHEMA)
    known = exists("n", table="silver.things", theirs=("id",))
    rule, named = (
        Rule("r", known, "", severity="warn"),
        Rule("b", exists("t", table="silver.things", theirs=("name",)), "", severity="warn", where="n <> 9"),
    )
    assert breaking_beside_others(rule, rows, reference) == {DAY: 3}
    assert profile(rows, (), (), rules=[rule])[DAY].rules["r"] == RuleCount(1, 5), "the null"
    assert breaking_beside_others(named, rows, reference) == {DAY: 1, NEXT: 1}


_HOW: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


_NUMBER, _TEXT = st.none() | st.integers(-3, 3), st.none() | st.text("ab\\'\n%ä_", max_size=3)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.tuples(_NUMBER, _NUMBER, _TEXT), min_size=1, max_size=12),
    bounds=st.tuples(st.integers(-3, 0), st.integers(0, 3)),
    texts=st.lists(st.text("ab\\'\n%ä_", max_size=3), min_size=1, max_size=3),
    how=st.sampled_from(sorted(_HOW)),
)
def test_spark_says_of_any_rows_what_plain_python_says(
    spark: SparkSession, values: list[Any], bounds: tuple[int, int], texts: list[str], how: Any
) -> None:
    low, high = bounds
    pattern = "|".join(map(re.escape, texts))
    expected: list[tuple[Kind, Callable[[Any, Any, Any], bool]]] = [
        (not_null("n"), lambda n, m, t: n is not None),
        (in_range("n", low, high), lambda n, m, t: n is not None and low <= n <= high),
        (one_of("t", *texts), lambda n, m, t: t in texts),
        (matches("t", pattern), lambda n, m, t: t is not None and bool(re.fullmatch(pattern, t))),
        (length("t", 1, high), lambda n, m, t: t is not None and 1 <= len(t) <= high),
        (compare("n", how, "order"), lambda n, m, t: None not in (n, m) and _HOW[how](n, m)),
    ]
    possible = [(kind, says) for kind, says in expected if not kind.wrong]
    rows = spark.createDataFrame([row(n=n, order=m, t=t) for n, m, t in values], SCHEMA)
    rules = [Rule(f"r{n}", kind, "A rule.") for n, (kind, _) in enumerate(possible)]
    told = rows.coalesce(1).select(*(keeps(rule) for rule in rules)).collect()
    assert [tuple(verdicts) for verdicts in told] == [tuple(says(*each) for _, says in possible) for each in values]


@pytest.fixture
def told(spark: SparkSession) -> DataFrame:
    """A version of the 12th, as the 3rd is told of it."""
    return spark.sql(
        "SELECT 1L AS id, 'event_date' AS label, false AS gone, 'f.jsonl' AS _arrival, 'tombstone' AS _kind, "
        "CAST(NULL AS string) AS _rescued, date'2017-01-12' AS _order_day, date'2017-01-03' AS event_date"
    )


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("event_date = date'2017-01-12'", True),
        ("EVENT_DATE < date'2017-01-10'", False),
        ("`event_date` < date'2017-01-10'", False),
        ("label = 'event_date'", True),
        ("label <> 'event_date' -- whatever it means", False),
        ("CAST(NULL AS boolean)", False),
    ],
)
def test_a_version_is_judged_on_its_own_day_by_what_was_delivered(told: DataFrame, expression: str, kept: bool) -> None:
    rules = (Rule("told", expression, "A rule."),)
    [judged] = with_verdict(told, rules, "gone").collect()
    [named] = with_broken_rules(told, rules).collect()
    assert (judged["_good"], named["_broken"]) == (kept, [] if kept else ["told"])
    assert str(judged["event_date"]) == "2017-01-03"
    assert with_verdict(told, rules, None).columns == [*told.columns, "_good"]


@pytest.mark.parametrize("expression", ["_rescued IS NULL", "_kind IN ('record', 'void')", "_order_day < event_date"])
def test_what_the_platform_has_added_is_nothing_that_a_rule_could_be_about(told: DataFrame, expression: str) -> None:
    with pytest.raises(AnalysisException, match="cannot be resolved"):
        with_verdict(told, (Rule("odd", expression, "A rule."),), None)


def test_breaches_that_take_keys_back_are_planned_once_however_many_rules_there_are(told: DataFrame) -> None:
    """Beside a condition by which rows are void: a plan that names each rule once for each other takes minutes."""
    rules = tuple(Rule(f"r{n}", f"id <> {n + 2}", "A rule.", breach="void") for n in range(20))
    versions = with_verdict(told, rules, "label = 'D' OR label = 'X'").where("_good").drop("_good")
    plan = versions.where("_kind <> 'void'")._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("label#") < 50
    [row] = with_verdict(told.withColumns({"_kind": F.lit("record"), "id": F.lit(5)}), rules, "label = 'D'").collect()
    assert (row["_kind"], row["_good"]) == ("breach", True)
