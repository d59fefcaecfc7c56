"""What the installations of tests have in common: jars, the first day, one JVM with Spark for a few rows.

Processes that need Spark work with the one JVM of a run, each in a session of its own, and start none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.configuration import TUNING
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets.spark.session.warm import attached_session

JARS = project_root() / ".platform" / "jars"
"""The project's own, so that nothing is downloaded a second time."""

FIRST = date(2017, 1, 1)
SMALL_DATA = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Spark looks after each of its rules whether the plan is still sound: an eighth of the time of its JVM
    "spark.sql.lightweightPlanChangeValidation": "false",
    # Where in a test a column was made, asked of the JVM for each of them: half of all the calls into it
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Tests work on a few rows: planning and starting tasks is all they cost."""

OWN_PROCESS = json.dumps(SMALL_DATA | {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
"""`PLATFORM_SPARK_CONF` of processes that tests start: they end before the JVM's better compiler would pay."""


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
            cast("Any", attached_session(self.port, self.secret).sparkContext).stop = _not_stopped
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


def rows_as_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """Rows as a frame that lies in the JVM: one made of Python objects is computed by Python workers each time."""
    struct = cast("StructType", StructType.fromDDL(schema))
    arrow = to_arrow_schema(struct, timezone="UTC")
    columns = zip(*rows, strict=True) if rows else [[] for _ in arrow]
    values = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return cast("DataFrame", cast("Any", spark).createDataFrame(pa.Table.from_arrays(values, schema=arrow), struct))


def fake_java(folder: Path, script: str) -> Path:
    """A program named `java` that really runs."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-01-01' >&2"""
