"""How far Spark is with what it is at: its running jobs, by the tasks of their stages. Asked from any thread."""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark import SparkContext

Tasks = tuple[int, int]
"""How many are done, of how many."""


def running_jobs() -> Mapping[int, Tasks]:
    """The tasks of every running job, by its number; nothing where Spark is idle, remote, not started or just ending.

    Numbers only grow: from them whoever asks again and again tells how many jobs have ended meanwhile.
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
        return {}  # stopped while it was asked; whoever works with it is told why
    return jobs
