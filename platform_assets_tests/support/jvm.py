"""The one JVM of a run: processes that need Spark work with it, each in a session of its own, and start none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.settings import load_settings
from platform_assets.spark.session.attached import attached
from platform_assets.spark.session.configuration import TUNING
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets_tests.support.installation import JARS, SMALL_DATA

_LOGS = "spark.databricks.delta.delta.log.cacheSize"


@dataclass(frozen=True)
class Jvm:
    """A JVM in which Spark runs, as another process finds it.

    Args:
        port: of its gateway.
        secret: that it asks for.
    """

    port: int
    secret: str

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """The one that runs a session of this process."""
        told = cast("Any", spark.sparkContext)._gateway.gateway_parameters
        return cls(told.port, told.auth_token)

    def session(self) -> SparkSession:
        """The session of this process, which has its own configuration and views."""
        if SparkContext._active_spark_context is None:
            cast("Any", attached(self.port, self.secret).sparkContext).stop = _not_stopped
        return SparkSession.builder.getOrCreate()


def _not_stopped() -> None:
    raise AssertionError("the JVM that all tests work with was to be stopped: this command has to run apart")


@contextmanager
def small_spark(state: Path, *, brief: bool) -> Iterator[SparkSession]:
    """Spark in a JVM that this process starts and ends, for the few rows of tests.

    Args:
        state: where the JVM logs.
        brief: whether the run is over before what the JVM's better compiler makes would have paid.
    """
    settings = load_settings(state=state, jars=JARS, spark_driver_memory="2g", spark_conf=SMALL_DATA)
    session = create_session(settings, record_classes=False, brief=brief)
    yield session
    cached = _cached_logs(session)
    stop_session(session)
    assert cached <= int(TUNING[_LOGS]), (
        f"Delta keeps {cached} logs: with their plans they fill the heap, and everything gets slow"
    )


def _cached_logs(session: SparkSession) -> int:
    deltas = getattr(cast("Any", session)._jvm, "org.apache.spark.sql.delta.DeltaLog$")
    return int(getattr(deltas, "MODULE$").cacheSize())
