"""What a rule sees of a row: what was delivered, on the day of the event, and nothing else."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Rule
from platform_assets.spark.raw.rules import with_broken_rules, with_verdict


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
