"""What a transform is given of reference data."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_assets.spark.windows import History


def test_of_several_rows_that_take_effect_on_one_day_the_last_holds(spark: SparkSession) -> None:
    rows = ", ".join(
        f"(1, timestamp'2017-01-{day:02}T{hour:02}:00:00Z', '{label}', date'2017-01-{day:02}')"
        for day, hour, label in [(2, 12, "noon"), (2, 8, "morning"), (2, 10, "later"), (4, 7, "new")]
    )
    reference = spark.sql(f"SELECT * FROM VALUES {rows} AS r(id, at, label, event_date)")
    sales = spark.sql("SELECT 1 AS id, explode(sequence(date'2017-01-01', date'2017-01-05')) AS event_date")
    joined = History(reference, ["id"], ["event_date", "at"]).as_of_join(sales).orderBy("event_date")
    assert [row["label"] for row in joined.collect()] == [None, "noon", "noon", "new", "new"]
