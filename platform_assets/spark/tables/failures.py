"""Explain errors of Spark, of a user's own code, or of an unsuitable session: where, what and why."""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any, Literal, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from platform_assets.errors import PlatformError, led_to, users_line
from platform_assets.lakehouse.errors import LakeError
from platform_assets.settings import Settings
from platform_assets.spark.session.configuration import TUNING
from platform_assets.spark.session.reasons import without_secrets

_SAYS = r"(?m)(?:^|: |\(|\] )"
"""Where a message or the name of a class begins; not within the path of a file, which the message may have, too."""

_NO_ROOM = "No space left on device|Disk quota exceeded"
_FULL = re.compile(f"{_SAYS}(?:{_NO_ROOM})")
_OF_THE_MACHINE = re.compile(
    f"{_SAYS}(?:{_NO_ROOM}|Too many open files|Cannot allocate memory|Input/output error|Stale file handle"
    "|Connection refused|ExecutorLostFailure|FetchFailed"
    r"|[\w.]*(?:OutOfMemoryError|InterruptedException|ClosedByInterruptException)\b"
    # What an object store does not give, or not just now
    r"|software\.amazon\.awssdk\.[\w.$]*Exception\b|org\.apache\.hadoop\.fs\.(?:s3a|azurebfs)\.[\w.$]*Exception\b"
    r"|java\.net\.(?:Socket|Connect|UnknownHost|NoRouteToHost)\w*Exception\b"
    r"|(?:Job|Stage|Task) \d+(?:\.\d+)? (?:was )?cancell?ed\b|Job group \S+ (?:was )?cancell?ed\b"
    r"|Cannot call methods on a stopped SparkContext|SparkContext (?:was|has been) shut ?down\b"
    ")"
)
"""What Spark says when something else than its rows stopped it."""

_OF_VALUES = re.compile(r"SQLSTATE: (?:22\w{3}|P0001)\b|(?m:^org\.apache\.spark\.api\.python\.PythonException\b)")
"""Of an expression that a value makes fail, by SQL's own classes of errors, and of a function in Python."""

_ADVICE = re.compile(r' If necessary set "spark\.sql\.ansi\.enabled" to "false" to bypass this error[^.]*\.')
"""Which is refused here: it would change what other expressions give."""

_SQLSTATE = re.compile(r" SQLSTATE: \w{5}$")
_CALLED_FROM = re.compile(r"was called from\n(\S+:\d+)")
_PYTHONS = re.compile(r"(?m)^\w[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*$")
"""How Python ends the trace of an error."""

_SAYS_WHERE = re.compile(r"FAILED_READ_FILE|Job aborted|\bfile:/")
"""Messages that only say that a task or file failed, or where it is; the reason is in their cause."""

_CLASS = re.compile(r"^[a-z][\w.$]*\.\w*(?:Exception|Error): ")
"""Java's name for an error, before what it says."""

_SAYS_NOTHING = re.compile(
    r"^java\.lang\.(?:NullPointer|ClassCast|NegativeArraySize|(?:Array)?IndexOutOfBounds)Exception\b"
)
"""Errors of a program, not of the file that it reads."""
_NOT_AS_PROMISED = "its content does not match its own metadata; write it again with another program"

_MOST_CAUSES = 30
_SHOWN = 300
"""Characters of Spark's message, which may quote a file."""


class TransformError(PlatformError):
    """A transform's result differs from its contract."""


class DiskFullError(PlatformError):
    """Spark had no room to write; no part of it was published."""


@contextmanager
def full_disk_explained(what: str) -> Iterator[None]:
    """Turn Spark's error about a full disk or quota into one with a remedy; other errors pass."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = "\n".join(causes(error))
        if not _FULL.search(said):
            raise
        raise DiskFullError(
            f"The disk is full: {what} could not be written.",
            "Free some space, or move the lake (PLATFORM_LAKE) or Spark's temporary files (spark.local.dir in "
            "PLATFORM_SPARK_CONF), and run the same command again: what was published stays, the rest is done anew.",
        ) from error


def complaint(error: PySparkException | Py4JError) -> str | None:
    """Return Spark's complaint about the given rows, by its first cause; None if the rows are not the cause."""
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        # Without an error of Java's, Python lost the JVM.
        return None
    said = list(causes(error))
    if any(_OF_THE_MACHINE.search(text) for text in said):
        return None
    # What py4j says of an error of Java's is only which method was called.
    messages = said[1:] if isinstance(error, Py4JJavaError) else said
    about = [text for text in messages if not _SAYS_NOTHING.search(text)]
    plain = (line for text in reversed(about) if (line := _first_line(text)) and not _SAYS_WHERE.search(line))
    otherwise = _first_line(messages[0])
    return next(plain, otherwise if about == messages and "file:/" not in otherwise else _NOT_AS_PROMISED)[:_SHOWN]


def failed_on_values(error: PySparkException | Py4JJavaError) -> str | None:
    """Return Spark's message if values made an expression or a Python function fail; None otherwise."""
    said = list(causes(error))
    if any(_OF_THE_MACHINE.search(text) for text in said):
        return None
    if (message := next((text for text in said if _OF_VALUES.search(text)), None)) is None:
        return None
    if of_python := _PYTHONS.findall(message) if "Traceback" in message else []:
        return str(of_python[-1])[:_SHOWN]
    where = f" ({place[1]})" if (place := _CALLED_FROM.search(message)) else ""
    return f"{_ADVICE.sub('', _SQLSTATE.sub('', _CLASS.sub('', message.split(chr(10))[0])))[:_SHOWN]}{where}"


def _first_line(text: str) -> str:
    return _CLASS.sub("", text.split("\n")[0]).rstrip(".")


def note_what_java_says(error: BaseException, settings: Settings) -> None:
    """Add Java's message to the error: when it is printed, Java is gone and can no longer be asked."""
    for each in led_to(error):
        if isinstance(each, PySparkException | Py4JJavaError):
            with suppress(Py4JError, OSError):  # it is gone already
                said = (text.strip().split("\n")[0] for text in causes(each))
                each.add_note(without_secrets("\n".join(filter(None, said)), settings))


def causes(error: Exception) -> Iterator[str]:
    """Yield the error's message, and Java's messages about its causes."""
    yield str(error)
    java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(_MOST_CAUSES):
        if java is None:
            return
        yield str(java.toString())
        java = java.getCause()


_PYSPARKS_OWN = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Errors that PySpark raises, too, for what a function of it was called with: these are of the user's code."""
_NOT_THEIRS = (PlatformError, PySparkException, Py4JError, MemoryError, ConnectionError, EOFError)
"""Errors that are not the fault of a user's code; the last ones come from a JVM that is gone."""
_OF_THE_SYSTEM = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE}
"""Errors of the operating system that are not about one file: a full disk opens no table's circuit."""


@contextmanager
def users_code(table: str, part: Literal["rules", "transform"] = "transform") -> Iterator[None]:
    """Explain errors in the rules or the transform of a table in this block, by table, part and line."""
    try:
        yield
    except AnalysisException as error:
        raise _explained(table, part, first_line(error), error) from error
    except (Exception, SystemExit) as error:
        of_system = isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM
        if of_system or (isinstance(error, _NOT_THEIRS) and not isinstance(error, _PYSPARKS_OWN)):
            raise
        raise _explained(table, part, f"{type(error).__name__}: {error}", error) from error


@contextmanager
def values_explained(table: str, days: Collection[date]) -> Iterator[None]:
    """Explain errors about values in this block, which computes rows by a table's contract and transform."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if (said := failed_on_values(error)) is None:
            raise
        first, last = min(days), max(days)
        of_days = f"{first}" if first == last else f"one of the days {first}..{last}"
        raise TransformError(
            f"The computation of {table} fails on a value of {of_days}: {said}",
            "Correct its transform, or have a rule quarantine such rows; none of these days was published. "
            "`platform-assets status stale` shows what waits.",
        ) from error


def first_line(error: AnalysisException) -> str:
    """Return Spark's message without the plan below it."""
    return str(error).strip().partition("\n")[0]


def _explained(table: str, part: str, what: str, error: BaseException) -> TransformError:
    line = users_line(error)
    where = f" ({line})" if line else ""
    return TransformError(
        f"{table} cannot be computed by its {part}{where}: {what}",
        "Correct it; no day of the table was published by it. `platform-assets status stale` shows what waits.",
    )


_NEEDED = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
_UNREADABLE = re.compile(
    "DATA_SOURCE_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"
    "|DELTA_CONFIGURE_SPARK_SESSION|No FileSystem for scheme"
)


@contextmanager
def explain_unreadable_session(spark: SparkSession) -> Iterator[None]:
    """Explain failures of a stopped session, or of one that cannot read a lake."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if hasattr(spark, "_jsparkSession") and cast("Any", spark.sparkContext)._jsc is None:
            raise LakeError("This Spark session was stopped.", "Take one that was not, or leave it to us.") from error
        if not _UNREADABLE.search(str(error)):
            raise
        raise LakeError(
            f"This Spark session was started without what a lake is read with: {_first_line(str(error))}.",
            "Stop the session and take the one that platform_assets.views() starts; or start yours as docs/readers.md "
            f"says, with Delta's jar, {', '.join(f'{name}={TUNING[name]}' for name in _NEEDED)} and "
            "spark.sql.runSQLOnFiles=true.",
        ) from error
