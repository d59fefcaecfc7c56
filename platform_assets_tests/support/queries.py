"""Count what Spark is asked: queries and jobs of the calling thread, whoever else uses the JVM meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


@dataclass
class Asked:
    """How many queries and jobs there were, and the plan of each query in short."""

    queries: int = 0
    jobs: int = 0
    plans: tuple[str, ...] = ()


@contextmanager
def asked(spark: SparkSession) -> Iterator[Asked]:
    """Count until the end of the block; jobs outside of queries, such as broadcasts of a plan, are counted too."""
    context, found, mark = spark.sparkContext, Asked(), f"counted-{uuid4()}"
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, mark)
    context.setJobGroup(mark, mark)
    try:
        yield found
    finally:
        context.setLocalProperty(_DESCRIPTION, cast("str", before))
        context.setLocalProperty("spark.jobGroup.id", cast("str", None))
    cast("Any", context)._jsc.sc().listenerBus().waitUntilEmpty()
    listed = cast("Any", spark)._jsparkSession.sharedState().statusStore().executionsList()
    mine = [one for one in map(listed.apply, range(listed.size())) if one.description() == mark]
    found.queries, found.plans = len(mine), tuple(one.physicalPlanDescription()[:400] for one in mine)
    found.jobs = len(context.statusTracker().getJobIdsForGroup(mark))
