"""How hard the machine was pressed by what Spark did: what did not fit into memory, and how full memory stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.scans import shows_plans


@dataclass(frozen=True)
class Strain:
    """What was seen of a session since somebody looked before.

    Args:
        spilled_bytes: written to disk by sorts and aggregations for want of memory.
        full_share: of the memory for what lives long, in use after Java collected last.
    """

    spilled_bytes: int = 0
    full_share: float = 0.0


class WatchedSpark:
    """Gives the session, and knows what it went through.

    Args:
        spark: gives the session.
    """

    def __init__(self, spark: SparkOnDemand) -> None:
        self._spark = spark
        self._given: SparkSession | None = None
        self._stages = 0

    def __call__(self) -> SparkSession:
        """The session."""
        given = self._spark()
        if self._given is None and shows_plans(given):
            self._stages = _next_stage(given)  # what it did before, for others, is none of ours
        self._given = given
        return given

    @property
    def was_needed(self) -> bool:
        """Whether anybody has asked for it."""
        return self._given is not None

    def strain(self) -> Strain:
        """What the session went through since this was asked last; of one behind Spark Connect nothing can be said."""
        if self._given is None or not shows_plans(self._given):
            return Strain()
        scala = cast("Any", self._given.sparkContext)._jsc.sc()
        scala.listenerBus().waitUntilEmpty()  # whoever keeps the figures of stages hears of them a moment later
        since, self._stages = self._stages, _next_stage(self._given)
        spilled = sum(_spilled(scala.statusStore(), number) for number in range(since, self._stages))
        return Strain(spilled, _full_share())


def _next_stage(spark: SparkSession) -> int:
    return int(cast("Any", spark.sparkContext)._jsc.sc().dagScheduler().nextStageId())


def _spilled(store: Any, stage: int) -> int:
    try:
        return int(store.lastStageAttempt(stage).diskBytesSpilled())
    except Py4JJavaError:  # it was never run, since its rows were there already
        return 0


def _full_share() -> float:
    beans = cast("Any", SparkContext._jvm).java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    for bean in beans:
        usage = bean.getCollectionUsage()
        if usage is not None and "Old" in bean.getName() and usage.getMax() > 0:
            return float(usage.getUsed() / usage.getMax())
    return 0.0
