"""A session of Sail next to one of Spark, in one process: one at a time, and gone when it is stopped.

A variable of the environment tells PySpark whether functions make columns of Spark Connect or of a JVM. Only this
module sets it, while Sail computes.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructType

from platform_assets.settings import Settings
from platform_assets.spark.sail.server import SailError, SailServer, start_server
from platform_assets.sql_settings import REQUIRED

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
MEMORY = re.compile(
    r"Failed to allocate additional|Resources exhausted|Memory Exhausted|memory allocation of \d+ bytes failed"
)
GONE = re.compile(r"StatusCode\.UNAVAILABLE|\[RETRIES_EXCEEDED\]")
_RETRIES, _LONGEST_PAUSE_MS = 4, 500
"""For a server on this machine: a dead one is noticed after a second or two."""


class _Running(NamedTuple):
    server: SailServer
    session: SparkSession


_running: list[_Running] = []


def sail_session(settings: Settings) -> SparkSession:
    """Return this process's session of Sail, started with the first use."""
    if _running and _running[0].server.ended_within():
        stop_sail()
    if not _running:
        server = start_server(settings)
        try:
            _running.append(_Running(server, _connect(server)))
        except BaseException:
            server.stop()
            raise
    return _running[0].session


def session_of(settings: Settings, engine: str, spark: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    """Return the function that returns an engine's session."""
    return spark if engine == "spark" else lambda: sail_session(settings)


def stop_sail() -> None:
    """End this process's Sail, if it has one."""
    while _running:
        server, session = _running.pop()
        if server.ended_within() is None:
            with suppress(PySparkException):
                cast("Any", session).client.set_retry_policies([])
                session.stop()
        else:
            cast("Any", session).client.close()
        server.stop()


def running_server() -> SailServer | None:
    """Return this process's own server, if it has one, alive or not."""
    return _running[0].server if _running else None


def server_of(session: SparkSession) -> SailServer:
    """Return the server of an unstopped session of Sail."""
    return next(running.server for running in _running if running.session is session)


def is_sail(spark: SparkSession) -> bool:
    """Return whether a session is one of Sail."""
    return any(running.session is spark for running in _running)


@contextmanager
def columns_for(engine: str) -> Iterator[None]:
    """Let PySpark's functions make columns for an engine in this block."""
    if engine != "sail" or _CONNECT_MODE in os.environ:
        yield
        return
    os.environ[_CONNECT_MODE] = "1"
    try:
        yield
    finally:
        os.environ.pop(_CONNECT_MODE, None)


def _connect(server: SailServer) -> SparkSession:
    try:
        from pyspark.sql.connect.client import ChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as Remote
    except ImportError as error:
        raise SailError(
            f"PLATFORM_ENGINE=sail needs packages that are not installed: {error}.",
            "Install them: uv sync --inexact --extra sail.",
        ) from error
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is reported by its cause

    class Channel(ChannelBuilder):
        """Connect to a socket in a folder that only its owner may enter, instead of a port of this machine."""

        @property
        def host(self) -> str:
            return "sail"

        def toChannel(self) -> Any:  # noqa: N802, so is it called by PySpark
            return self._insecure_channel(f"unix:{server.socket}")

    # By default a client names the socket's path in its place, which is no name of a host
    channel = Channel([("grpc.default_authority", "localhost")])
    session = cast("Any", Remote.builder).channelBuilder(channel).create()
    client = cast("Any", session).client
    client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)])
    cast("Any", session.conf)._set_all(configs=dict(REQUIRED), silent=True)
    return cast("SparkSession", session)


def as_spark_counts(spark: SparkSession, frame: DataFrame, schema: StructType) -> DataFrame:
    """Cast longs of Sail's frames to the ints that a contract declares: Sail counts days in longs, Spark in ints.

    A value that is not an int raises an error. All other columns must have their type already; frames of Spark are
    never cast silently.
    """
    if not is_sail(spark):
        return frame
    ints = {field.name for field in schema.fields if field.dataType == IntegerType()}
    longs = [field.name for field in frame.schema.fields if field.dataType == LongType() and field.name in ints]
    return frame.withColumns({name: F.col(name).cast("int") for name in longs}) if longs else frame
