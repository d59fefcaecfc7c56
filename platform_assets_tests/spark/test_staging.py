"""What is staged is what was computed, in one form."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from platform_assets.lakehouse.layout import located
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import declared_types, schema_of
from platform_assets.spark.tables.staging import stage


def test_types_are_told_in_the_words_of_contracts() -> None:
    """What Spark calls a bigint, nobody has declared."""
    declared = {"id": "long", "number": "int", "at": "timestamp", "paid": "decimal(12,2)", "note": "string"}
    assert declared_types(schema_of(**declared)) == declared | {"event_date": "date"}


def test_there_is_one_zero(spark: SparkSession, tmp_path: Path) -> None:
    values = "(1, -0.0D), (2, 0.0D), (3, -1.5D), (4, double('NaN')), (5, CAST(NULL AS double))"
    stage(
        spark.sql(f"SELECT id, x, date'2017-01-01' AS event_date FROM VALUES {values} AS t(id, x)"),
        located(tmp_path / "p"),
    )
    rows = read_staged(spark, located(tmp_path / "p")).orderBy("id").collect()
    assert [str(row["x"]) for row in rows] == ["0.0", "0.0", "-1.5", "nan", "None"]


def test_nothing_is_staged_but_rows_whatever_a_cluster_asks_for(spark: SparkSession, tmp_path: Path) -> None:
    """With these settings Hadoop's writer leaves a file that holds the smallest and greatest values of all others."""
    asking = spark.newSession()
    asking.conf.set("parquet.enable.summary-metadata", "true")
    asking.conf.set("parquet.summary.metadata.level", "ALL")
    stage(asking.sql("SELECT 1 AS k, DATE'2017-01-01' AS event_date"), located(tmp_path / "stage"))
    staged = {path.name.partition("-")[0] for path in (tmp_path / "stage").iterdir()}
    assert staged == {"_delta_log", "event_date=2017"}
