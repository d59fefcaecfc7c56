"""What a transform is given of reference data."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Window, offsets, same_date
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.spark.windows import History, Windowed


def test_of_several_rows_that_take_effect_on_one_day_the_last_holds(spark: SparkSession) -> None:
    rows = ", ".join(
        f"(1, timestamp'2017-01-{day:02}T{hour:02}:00:00Z', '{label}', date'2017-01-{day:02}')"
        for day, hour, label in [(2, 12, "noon"), (2, 8, "morning"), (2, 10, "later"), (4, 7, "new")]
    )
    reference = spark.sql(f"SELECT * FROM VALUES {rows} AS r(id, at, label, event_date)")
    sales = spark.sql("SELECT 1 AS id, explode(sequence(date'2017-01-01', date'2017-01-05')) AS event_date")
    joined = History(reference, ["id"], ["event_date", "at"]).as_of_join(sales).orderBy("event_date")
    assert [row["label"] for row in joined.collect()] == [None, "noon", "noon", "new", "new"]


@pytest.mark.parametrize("window", [offsets(-3, 0, 2), same_date(-1, 0), same_date(-4, 1)], ids=repr)
def test_a_row_counts_for_exactly_the_days_whose_window_chooses_its_day(spark: SparkSession, window: Window) -> None:
    calendar = Calendar(date(2020, 2, 20), date(2024, 3, 5))
    days = [day for day in calendar.days() if (day.month, day.day) in {(2, 25), (2, 28), (2, 29), (3, 1)}]
    rows = spark.sql("SELECT explode(sequence(date'2020-02-20', date'2024-03-05')) AS event_date")
    spread = Windowed(rows, window, days).per_day().collect()
    counted = sorted((row["event_date"], row["source_date"]) for row in spread)
    assert counted == [(day, read) for day in days for read in sorted(days_read(window, day, calendar))]
