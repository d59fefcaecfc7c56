"""Where Spark computes: in the driver's own process, or in executors of a cluster, for which it is waited."""

from __future__ import annotations

import time
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.progress import OnProgress, meanwhile
from platform_assets.settings import Settings
from platform_assets.spark.session.jvm import SessionError

_LOOK_S = 0.1


def computes_here(settings: Settings) -> bool:
    """Return whether driver and executors are one process of this machine, which sees all that this one sees."""
    return settings.spark_remote is None and _is_local(settings.spark_master)


def is_one_process(spark: SparkSession) -> bool:
    """Return whether driver and executors of a session are one process, so that they end together."""
    return hasattr(spark, "_jsparkSession") and _is_local(spark.sparkContext.master or "")


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def wait_for_executors(context: SparkContext, settings: Settings, progress: OnProgress) -> None:
    """Wait until a cluster has given the session its first executor: without one, every job would wait for ever.

    Where the cluster allocates them with the work (`spark.dynamicAllocation.enabled`), there is nothing to wait for.

    Raises:
        SessionError: none came within `spark_wait_s`.
    """
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    known = cast("Any", context)._jsc.sc().getExecutorMemoryStatus
    until = time.monotonic() + settings.spark_wait_s
    with meanwhile(progress, f"waiting for {settings.spark_master} to give executors"):
        while known().size() < 2:  # the driver is counted, too
            if time.monotonic() > until:
                asked = context.getConf().get("spark.executor.memory", "1g")
                raise SessionError(
                    f"{settings.spark_master} gave no executor within {settings.spark_wait_s:g} seconds: no worker is "
                    f"there, has {asked} and a core free, or can reach this machine.",
                    "Look at the cluster's own page. Ask for less with spark.executor.memory and spark.executor.cores "
                    "in PLATFORM_SPARK_CONF, name an address of this machine that workers reach with "
                    "spark.driver.host, or wait longer with PLATFORM_SPARK_WAIT_S.",
                )
            time.sleep(_LOOK_S)
