"""Temporary views of all released tables in a Spark session, at one release."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.sql_views import spark_view, statements, tables_without_view
from platform_assets.spark.tables.unreadable_session import unreadable_session_told


def register_views(spark: SparkSession, lake: Lake, release: Release) -> None:
    """Show every table of a release as `<layer>_<table>`, and no table that came after it.

    Raises:
        DamagedTableError: files of that release are gone; the views are as they were.
        LakeError: with this session no lake can be read; the message says what it lacks.
    """
    with unreadable_session_told(spark):
        for statement in list(statements(lake, release, "spark")):
            spark.sql(statement)
    for table in tables_without_view(lake, release):
        spark.catalog.dropTempView(spark_view(table))
