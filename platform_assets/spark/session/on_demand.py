"""A session that is started only where one is needed, so that work without anything to compute starts none."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

SparkOnDemand = Callable[[], SparkSession]
"""Gives the session, and starts it when it is first asked for."""


class TimedSpark:
    """Gives the session, and knows how long it was waited for: Java's start is no day's cost."""

    def __init__(self, spark: SparkOnDemand) -> None:
        self._spark = spark
        self.waited = 0.0

    def __call__(self) -> SparkSession:
        """The session."""
        began = time.monotonic()
        try:
            return self._spark()
        finally:
            self.waited += time.monotonic() - began
