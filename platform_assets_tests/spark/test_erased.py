"""Rows of erased keys are told in Spark by hashes, and lose what they hold before anything is written."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import SparkSession

from platform_assets.records.erased_keys import ErasedKeys, hash_of
from platform_assets.spark.raw.erased import erased_rows, is_erased, without_erased

SECRET = b"the secret of an installation"
HASHED = hash_of(SECRET, "person", "4711222")
KEYS = ErasedKeys(SECRET, [{"person": HASHED}], {"person": "long"})


def test_rows_lose_all_but_where_they_came_from_and_no_plan_shows_by_what(spark: SparkSession) -> None:
    """A worker of Python starts."""
    day = "date'2017-01-01'"
    rows = spark.sql(
        "SELECT * FROM VALUES "
        f"(4711222L, 1L, 'a', {day}, NULL, 'record', {day}), "
        f"(8L, 2L, 'a', {day}, NULL, 'record', {day}), "
        f"(NULL, NULL, 'b', {day}, '{{\"person\": 4711222, \"visit\"', 'broken line', NULL), "
        f"(NULL, 3L, 'b', {day}, '{{\"person\": 4711222}}', 'record', {day}), "
        f"(NULL, NULL, 'b', {day}, '1,2,3', 'broken line', NULL) "
        "AS rows(person, visit, _arrival, _arrival_date, _rescued, _kind, event_date)"
    ).localCheckpoint()  # whose plan has no values
    left = without_erased(rows, KEYS)
    found = [tuple(row) for row in left.select("person", "visit", "_arrival", "_rescued", "_kind").collect()]
    assert found == [
        (None, None, "a", None, "erased"),
        (8, 2, "a", None, "record"),
        (None, None, "b", None, "erased"),
        (None, None, "b", None, "erased"),
        (None, None, "b", "1,2,3", "broken line"),
    ]
    assert erased_rows(left) == {"a": 1, "b": 2}
    plan = cast("Any", rows.where(is_erased(rows, KEYS)))._jdf.queryExecution().toString()
    assert "of_erased_key" in plan
    assert not any(text in plan for text in (SECRET.decode(), HASHED, "4711222"))


def test_where_nothing_was_erased_nothing_is_done(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1L AS person")
    assert without_erased(rows, None) is rows
