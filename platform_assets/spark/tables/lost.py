"""Explain a Spark that is gone, out of memory, or that wrote files where this machine does not look.

If one machine of a cluster has not mounted a folder, or has another one in its place, its executors write without an
error, and the driver, which moves files into place when all have written, never sees those. Only their number shows it,
which tasks report and Spark adds up.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from typing import Any, NamedTuple, cast
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.contracts import DAY
from platform_assets.errors import PlatformError, led_to
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import is_object_store
from platform_assets.settings import Settings
from platform_assets.spark.sail.server import ended_within
from platform_assets.spark.sail.session import GONE, MEMORY, running_server
from platform_assets.spark.session.on_demand import computes_here, is_one_process
from platform_assets.spark.session.warm import lease_of_jvm
from platform_assets.spark.tables.failures import causes
from platform_assets.spark.tables.scans import shows_plans

_MEMORY = re.compile(r"(?m)(?:^|: |\(|\] )[\w.]*OutOfMemoryError\b")
_STOPPED = re.compile(
    r"stopped SparkContext|SparkContext (?:was|has been) shut ?down"
    # Calls while it stops find parts of it gone
    r'|because the return value of "org\.apache\.spark\.SparkContext\.\w+\(\)" is null'
)
_SERVER_GONE = re.compile(
    r"StatusCode\.UNAVAILABLE|\[RETRIES_EXCEEDED\]|\[INVALID_HANDLE\.(?:SESSION_NOT_FOUND|SESSION_CHANGED|SESSION_CLOSED)\]"
)
"""What a client of Spark Connect hears of a server that ended, also where another one has taken its place."""
_ENDS_WITHIN_S = 2.0
"""Longest time between the last answer and the end of the process."""

_SILENT = "does not answer any more"
_AGAIN = "Run the same command again then: what was published stays, the rest is done anew."

_FILES = "number of written files"
_DESCRIPTION = "spark.job.description"
_COUNT = re.compile(r"(\d+) -> ([\d,]+)")
_MISSING = re.compile(r"FileNotFoundException: File (?:file:)?(/.+) does not exist")
_TODO = (
    "Mount the lake's folder at the same path on every machine of the cluster, or put the lake into an object store. "
    "Nothing was published of it."
)


class SparkLostError(PlatformError):
    """Spark ended, ran out of memory or wrote elsewhere in the middle of work; published data stays."""


class _Loss(NamedTuple):
    """Messages of Spark or Sail when it has ended, and the error for a person."""

    says: re.Pattern[str]
    what: str
    todo: str


_LESS = "PLATFORM_BATCH_DAYS and PLATFORM_BATCH_MIB"
_OF_SAIL = (
    _Loss(
        MEMORY,
        "Sail ran out of memory.",
        f"Give it more with {{sail}}, let it do less at once with {_LESS}, or compute with PLATFORM_ENGINE=spark.",
    ),
    _Loss(
        GONE,
        "Sail {ended} in the middle of work: it ran out of memory, or it was killed.",
        "Give it more with {sail} if logs/sail.log in the state folder speaks of memory, or compute with "
        "PLATFORM_ENGINE=spark.",
    ),
)
_OF_CONNECT = _Loss(
    _SERVER_GONE,
    "The Spark Connect server of PLATFORM_SPARK_REMOTE ended, or cannot be reached any more, in the middle of work.",
    "Start it again, with more memory if its log says that it had too little.",
)
_OF_SPARK = (
    _Loss(
        _MEMORY,
        "Spark ran out of memory.",
        f"Give it more with {{spark}}, or let it do less at once with {_LESS}.",
    ),
    _Loss(
        _STOPPED,
        "Spark stopped in the middle of work: the machine was suspended or out of memory, or Spark was ended.",
        "The last lines of logs/spark.log in the state folder say more; for want of memory, change {spark}.",
    ),
)


@contextmanager
def lost_spark_explained(settings: Settings) -> Iterator[None]:
    """Turn errors of a Spark that died, or ran out of memory, into a remedy; other errors pass."""
    try:
        yield
    except Exception as error:
        chain = list(led_to(error))
        # Who interrupts ends the JVM himself.
        if isinstance(error, PlatformError) or any(isinstance(cause, KeyboardInterrupt) for cause in chain):
            raise
        if (explained := _explained(chain, settings)) is None:
            raise
        raise explained from error


def _explained(chain: list[BaseException], settings: Settings) -> PlatformError | None:
    memory = f"PLATFORM_SPARK_DRIVER_MEMORY ({settings.spark_driver_memory} now)"
    server = running_server()
    losses: tuple[_Loss, ...] = (
        *(_OF_SAIL if server else ()),
        *((_OF_CONNECT,) if settings.spark_remote else ()),
        *_OF_SPARK,
    )
    for error in chain:
        if not isinstance(error, PySparkException | Py4JJavaError):
            continue
        if elsewhere := lies_elsewhere(error, settings):
            return elsewhere
        said = "\n".join(causes(error))
        if loss := next((each for each in losses if each.says.search(said)), None):
            ended = (server.ended_within(_ENDS_WITHIN_S) if server else None) or _SILENT
            todo = loss.todo.format(spark=memory, sail=f"PLATFORM_SAIL_MEMORY ({settings.sail_memory} now)")
            return SparkLostError(loss.what.format(ended=ended), f"{todo} {_AGAIN}")
    if not any(_is_of_a_lost_connection(error) for error in chain):
        return None
    gone = _end_of_jvm()
    if gone is None and not any(isinstance(error, Py4JNetworkError) for error in chain):
        return None
    borrowed = "" if lease_of_jvm() is None else "`up`, which keeps it ready, was ended, "
    return SparkLostError(
        f"Spark's JVM {gone or _SILENT} in the middle of work: {borrowed}the machine ran out of memory, or it was "
        "killed.",
        f"Where the machine's memory ran out, {memory} is to be less than what is free, or {_LESS} smaller; the last "
        f"lines of logs/spark.log in the state folder may say more. {_AGAIN}",
    )


def _is_of_a_lost_connection(error: BaseException) -> bool:
    if isinstance(error, Py4JError):
        return not isinstance(error, Py4JJavaError)
    return isinstance(error, ConnectionError | EOFError)


def _end_of_jvm() -> str | None:
    """Return how this session's JVM ended; None if it lives, or without one.

    A dying JVM accepts no connection, though its process exists for a moment; for one that another process keeps, that
    is the only sign.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return None
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None and (ended := ended_within(process, _ENDS_WITHIN_S)):
        return ended
    where = gateway.gateway_parameters
    try:
        create_connection((where.address, where.port), _ENDS_WITHIN_S).close()
    except ConnectionRefusedError:
        return _SILENT if process else "was ended"
    except OSError:
        return None
    return None


def lies_elsewhere(error: Exception, settings: Settings) -> SparkLostError | None:
    """Return the error for an executor that did not find a file of the lake; None if it did."""
    if computes_here(settings) or is_object_store(settings.lake):
        return None
    missing = (found[1] for text in causes(error) if (found := _MISSING.search(text)))
    file = next((path for path in missing if Path(path).is_relative_to(settings.lake) and Path(path).exists()), None)
    return None if file is None else SparkLostError(f"A machine of the cluster does not find {file}.", _TODO)


@contextmanager
def found_here(spark: SparkSession, folder: Location) -> Iterator[None]:
    """Refuse a cluster's write to a folder that has fewer files than were written.

    Not for an object store, which all machines see alike, nor with Spark Connect, which does not report the number.
    """
    if not shows_plans(spark) or is_one_process(spark) or is_object_store(str(folder)):
        yield
        return
    context, mark = spark.sparkContext, f"writes {uuid4()}"
    before, said = _files_in(folder), context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, mark)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, cast("str", said))
    written, found = _files_written(spark, mark), _files_in(folder) - before
    if written is not None and found < written:
        raise SparkLostError(
            f"Of {written:,} files that the cluster wrote into {folder}, {found:,} lie there: one of its machines has "
            "another folder at that path.",
            _TODO,
        )


def _files_in(folder: Location) -> int:
    return sum(path.startswith(f"{DAY}=") for path in folder.files())


def _files_written(spark: SparkSession, mark: str) -> int | None:
    """Return how many files the only execution with a description wrote; None if Spark has no record of it."""
    session = cast("Any", spark)
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    known = session._jsparkSession.sharedState().statusStore()
    executions = known.executionsList()
    for at in reversed(range(executions.size())):
        execution = executions.apply(at)
        if execution.description() == mark:
            break
    else:
        return None
    named = (execution.metrics().apply(at) for at in range(execution.metrics().size()))
    ids = {int(metric.accumulatorId()) for metric in named if metric.name() == _FILES}
    values = str(known.executionMetrics(execution.executionId()).mkString("\n")).splitlines()
    counts = (_COUNT.fullmatch(value) for value in values)  # of times and sizes there are several lines
    found = [count[2] for count in counts if count and int(count[1]) in ids]
    return sum(int(text.replace(",", "")) for text in found) if found else None
