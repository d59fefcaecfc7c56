"""Which files of a batch make Spark fail, so that they do not keep the others from being taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from platform_assets.compute.failures import complaint
from platform_assets.sources.landing import LandedFile

_Parsed = Callable[[Sequence[LandedFile]], DataFrame]


def untakeable(spark: SparkSession, parsed: _Parsed, files: Sequence[LandedFile]) -> dict[LandedFile, str]:
    """The files that Spark cannot take even alone, each with the reason; found by halving, so that few cost little.

    Nothing is written. Where the rows come through, so that it was writing them that failed, no file is to blame.

    Args:
        spark: the session.
        parsed: the rows of some files, which may fail before they are read.
        files: that failed together.

    Raises:
        PySparkException, Py4JError: not a file makes Spark fail, but the machine, or an interruption.
    """
    try:
        _read_through(parsed(files))
    except (PySparkException, Py4JError) as error:
        reason = complaint(error)
        if reason is None:
            raise
        if len(files) == 1:
            # A Spark that is gone fails with every file.
            _read_through(spark.range(1))
            return {files[0]: f"cannot be read by Spark: {reason}"}
        half = len(files) // 2
        return untakeable(spark, parsed, files[:half]) | untakeable(spark, parsed, files[half:])
    return {}


def _read_through(rows: DataFrame) -> None:
    """Compute every field of every row, and forget it."""
    rows.write.format("noop").mode("overwrite").save()
