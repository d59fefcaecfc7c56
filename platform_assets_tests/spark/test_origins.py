"""A process that notes no origins of columns still notes none after a transform; a session's own setting is static."""

from __future__ import annotations

from typing import Any

from pyspark.errors import utils
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from platform_assets.spark.session.origins import note_no_origins
from platform_assets.spark.tables.scans import with_own_jobs


def test_a_process_that_notes_nothing_still_does_after_a_transform(spark: SparkSession) -> None:
    note_no_origins()
    with_own_jobs(spark, lambda: spark.range(1).select(F.lit(1) / F.col("id")))
    noted: Any = utils._enable_debugging_cache
    assert noted is False
