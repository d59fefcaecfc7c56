"""What goes wrong in a user's own code is told with its line; of columns of this package nobody asks where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import ArithmeticException, utils
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.spark.session.origins import note_no_origins
from platform_assets.spark.tables.scans import with_own_jobs

_NOTES = "spark.python.sql.dataFrameDebugging.enabled"


@pytest.fixture
def noting(spark: SparkSession) -> Iterator[SparkSession]:
    """A session as Spark has it by itself, in a process as runs have it; the session of tests notes nothing."""
    before = spark.conf.get(_NOTES)
    spark.conf.set(_NOTES, "true")
    spark.range(1).count()  # what a thread asks for first makes a session its own
    note_no_origins()
    yield spark
    spark.conf.set(_NOTES, str(before))


def _divided(spark: SparkSession) -> DataFrame:
    return spark.range(1).select(F.lit(1) / F.col("id"))


def _told(frame: DataFrame) -> str:
    with pytest.raises(ArithmeticException) as raised:
        frame.collect()
    return str(raised.value)


def test_a_transforms_line_is_told_and_a_line_of_this_package_is_not(noting: SparkSession) -> None:
    theirs, _ = with_own_jobs(noting, lambda: _divided(noting))
    assert "test_origins.py" in _told(theirs)
    assert "test_origins.py" not in _told(_divided(noting))


def test_a_process_that_notes_nothing_still_does_after_a_transform(noting: SparkSession) -> None:
    before: Any = utils._enable_debugging_cache
    with_own_jobs(noting, lambda: _divided(noting))
    assert utils._enable_debugging_cache is before
