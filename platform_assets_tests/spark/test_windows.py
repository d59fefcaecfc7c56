"""What a transform is given of reference data, and through a window."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Span
from platform_assets.spark.windows import History, Windowed

FIRST = date(2017, 1, 1)


def test_of_several_rows_that_take_effect_on_one_day_the_last_holds(spark: SparkSession) -> None:
    rows = ", ".join(
        f"(1, timestamp'2017-01-{day:02}T{hour:02}:00:00Z', '{label}', date'2017-01-{day:02}')"
        for day, hour, label in [(2, 12, "noon"), (2, 8, "morning"), (2, 10, "later"), (4, 7, "new")]
    )
    reference = spark.sql(f"SELECT * FROM VALUES {rows} AS r(id, at, label, event_date)")
    sales = spark.sql("SELECT 1 AS id, explode(sequence(date'2017-01-01', date'2017-01-05')) AS event_date")
    joined = History(reference, ["id"], ["event_date", "at"]).as_of_join(sales).orderBy("event_date")
    assert [row["label"] for row in joined.collect()] == [None, "noon", "noon", "new", "new"]


@pytest.mark.parametrize(
    "days",
    [
        {FIRST},
        {FIRST + timedelta(n) for n in (0, 1, 2, 40, 41, 4095)},
        {date(1970, 1, 1) + timedelta(4094 + n) for n in range(4)},
        {date(1969, 12, 30) + timedelta(n) for n in range(4)},
        {FIRST, FIRST + timedelta(4096)},
    ],
    ids=["one", "scattered", "around the end of the list", "around the epoch", "more than the list holds"],
)
def test_each_row_is_spread_over_just_the_days_that_are_computed(spark: SparkSession, days: set[date]) -> None:
    within = [min(days) + timedelta(n) for n in range(-3, (max(days) - min(days)).days + 4)]
    texts = ", ".join(f"date'{day}'" for day in within if any(abs(day - asked) < timedelta(4) for asked in days))
    rows = spark.sql(f"SELECT explode(array({texts})) AS event_date")
    spread = Windowed(rows, Span(2, 0), sorted(days)).per_day().collect()
    expected = {(day + timedelta(n), day) for day in within for n in range(3) if day + timedelta(n) in days}
    assert {(row["event_date"], row["source_date"]) for row in spread} == expected
    assert len(spread) == len(expected)


def test_the_days_are_no_part_of_the_code_that_spark_makes(spark: SparkSession) -> None:
    def code(first: date) -> str:
        rows = spark.sql(
            "SELECT CAST(id AS int) AS n, date_add(date'2017-01-01', CAST(id AS int)) AS event_date FROM range(9)"
        )
        spread = Windowed(rows, Span(27, 0), [first, first + timedelta(60)]).per_day()
        plan: Any = cast("Any", spread)._jdf.queryExecution().executedPlan()
        package = cast("Any", spark)._jvm.org.apache.spark.sql.execution
        whole = package.WholeStageCodegenExec(plan, 1)
        return str(whole.doCodeGen()._2().body())

    assert code(date(2017, 2, 1)) == code(date(2017, 9, 9))
