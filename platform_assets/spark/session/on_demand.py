"""Start a session only when needed; find out where it computes, and how far its jobs are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.settings import Settings

SparkOnDemand = Callable[[], SparkSession]
"""Gives the session, and starts it when it is first asked for."""

Tasks = tuple[int, int]
"""How many are done, of how many."""


class TimedSpark:
    """Return the session and measure the wait for it: Java's start is not a day's cost."""

    def __init__(self, spark: SparkOnDemand) -> None:
        self._spark = spark
        self.waited = 0.0

    def __call__(self) -> SparkSession:
        """Return the session."""
        began = time.monotonic()
        try:
            return self._spark()
        finally:
            self.waited += time.monotonic() - began


def running_jobs() -> Mapping[int, Tasks]:
    """Return the tasks of every running job, by its number; nothing if Spark is idle, remote, not started or ending.

    Numbers only grow, so that a caller can count the jobs that ended between two calls.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return {}
    jobs: dict[int, Tasks] = {}
    try:
        tracker = context.statusTracker()
        for number in tracker.getActiveJobsIds():
            job = tracker.getJobInfo(number)
            stages = [info for stage in (job.stageIds if job else ()) if (info := tracker.getStageInfo(stage))]
            jobs[number] = sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)
    except (Py4JError, OSError, AttributeError):
        return {}  # stopped in between; the thread that works with it gets the error
    return jobs


def computes_here(settings: Settings) -> bool:
    """Return whether driver and executors are one process of this machine."""
    return settings.spark_remote is None and _is_local(settings.spark_master)


def is_one_process(spark: SparkSession) -> bool:
    """Return whether driver and executors of a session are one process, so that they end together."""
    return hasattr(spark, "_jsparkSession") and _is_local(spark.sparkContext.master or "")


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")
