"""A Spark that is gone or has no memory left, told as such and with what to set, whatever it was asked."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import create_connection

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from platform_assets.errors import PlatformError, led_to
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import GONE, MEMORY, running_server
from platform_assets.spark.session.attached import lease_of_jvm
from platform_assets.spark.tables.failures import causes
from platform_assets.spark.tables.written import lies_elsewhere

_MEMORY = re.compile(r"(?m)(?:^|: |\(|\] )[\w.]*OutOfMemoryError\b")
_STOPPED = re.compile(
    r"stopped SparkContext|SparkContext (?:was|has been) shut ?down"
    # What is asked while it stops finds parts of it gone
    r'|because the return value of "org\.apache\.spark\.SparkContext\.\w+\(\)" is null'
)
_SERVER_GONE = re.compile(
    r"StatusCode\.UNAVAILABLE|\[RETRIES_EXCEEDED\]|\[INVALID_HANDLE\.(?:SESSION_NOT_FOUND|SESSION_CHANGED|SESSION_CLOSED)\]"
)
"""What a client of Spark Connect hears of a server that ended, also where another one has taken its place."""
_ENDS_WITHIN_S = 2.0
"""Between the moment in which nobody answers any more and the one in which the process is gone."""

_AGAIN = "Run the same command again then: what was published stays, the rest is done anew."


class SparkLostError(PlatformError):
    """Spark ended in the middle of work; what was published stays."""


class SparkMemoryError(PlatformError):
    """Spark had too little memory for what it was asked; what was published stays."""


@contextmanager
def lost_spark_explained(settings: Settings) -> Iterator[None]:
    """Turn what Python hears of a Spark that died, or ran out of memory, into what to do; all else passes.

    Args:
        settings: it was started with.

    Raises:
        SparkLostError: the JVM ended, or Spark in it.
        SparkMemoryError: the memory of the JVM was not enough.
    """
    try:
        yield
    except Exception as error:
        chain = list(led_to(error))
        # Who interrupts ends the JVM himself.
        if isinstance(error, PlatformError) or any(isinstance(cause, KeyboardInterrupt) for cause in chain):
            raise
        if (told := _told(chain, settings)) is None:
            raise
        raise told from error


def _told(chain: list[BaseException], settings: Settings) -> PlatformError | None:
    memory = f"PLATFORM_SPARK_DRIVER_MEMORY ({settings.spark_driver_memory} now)"
    for error in chain:
        if not isinstance(error, PySparkException | Py4JJavaError):
            continue
        said = "\n".join(causes(error))
        if told := _told_of_sail(said, settings):
            return told
        if _MEMORY.search(said):
            return SparkMemoryError(
                "Spark ran out of memory.",
                f"Give it more with {memory}, or let it do less at once with PLATFORM_BATCH_DAYS and "
                f"PLATFORM_BATCH_MIB. {_AGAIN}",
            )
        if elsewhere := lies_elsewhere(error, settings):
            return elsewhere
        if settings.spark_remote and _SERVER_GONE.search(said):
            return SparkLostError(
                "The Spark Connect server of PLATFORM_SPARK_REMOTE ended, or cannot be reached any more, in the middle "
                "of work.",
                f"Start it again, with more memory if its log says that it had too little. {_AGAIN}",
            )
        if _STOPPED.search(said):
            return SparkLostError(
                "Spark stopped in the middle of work: the machine was suspended or out of memory, or Spark was ended.",
                f"The last lines of logs/spark.log in the state folder say more; for want of memory, change {memory}. "
                f"{_AGAIN}",
            )
    if not any(_is_of_a_lost_connection(error) for error in chain):
        return None
    gone = _end_of_jvm()
    if gone is None and not any(isinstance(error, Py4JNetworkError) for error in chain) and not _is_deaf():
        return None
    borrowed = "" if lease_of_jvm() is None else "`up`, which keeps it ready, was ended, "
    return SparkLostError(
        f"Spark's JVM {gone or 'does not answer any more'} in the middle of work: {borrowed}the machine ran out of "
        "memory, or somebody killed it.",
        f"Where the machine's memory ran out, {memory} is to be less than what is free, or PLATFORM_BATCH_DAYS and "
        f"PLATFORM_BATCH_MIB smaller; the last lines of logs/spark.log in the state folder may say more. {_AGAIN}",
    )


def _told_of_sail(said: str, settings: Settings) -> PlatformError | None:
    if (server := running_server()) is None:
        return None
    memory = f"PLATFORM_SAIL_MEMORY ({settings.sail_memory} now)"
    if MEMORY.search(said):
        return SparkMemoryError(
            "Sail ran out of memory.",
            f"Give it more with {memory}, let it do less at once with PLATFORM_BATCH_DAYS and PLATFORM_BATCH_MIB, or "
            f"compute with PLATFORM_ENGINE=spark. {_AGAIN}",
        )
    if not GONE.search(said):
        return None
    return SparkLostError(
        f"Sail {server.ended_within(_ENDS_WITHIN_S) or 'does not answer any more'} in the middle of work: it ran out "
        "of memory, or somebody killed it.",
        f"Give it more with {memory} if logs/sail.log in the state folder speaks of memory, or compute with "
        f"PLATFORM_ENGINE=spark. {_AGAIN}",
    )


def _is_of_a_lost_connection(error: BaseException) -> bool:
    if isinstance(error, Py4JError):
        return not isinstance(error, Py4JJavaError)
    return isinstance(error, ConnectionError | EOFError)


def _end_of_jvm() -> str | None:
    """How the process of this session's JVM ended; None if it lives, or there is none."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return _end_of_lent_jvm()
    try:
        code = process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        return None
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"was ended by signal {-code}"


def _is_deaf() -> bool:
    """Whether the JVM takes no connection any more though its process is there, as in the minutes in which it dies."""
    if SparkContext._gateway is None:
        return False
    where = SparkContext._gateway.gateway_parameters
    try:
        create_connection((where.address, where.port), _ENDS_WITHIN_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _end_of_lent_jvm() -> str | None:
    """The same of one that another process keeps: nobody listens any more where its gateway was."""
    lease = lease_of_jvm()
    if lease is None:
        return None
    with socket.socket() as probe:
        probe.settimeout(_ENDS_WITHIN_S)
        return "was ended" if probe.connect_ex(("127.0.0.1", lease.port)) else None
