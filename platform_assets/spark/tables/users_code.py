"""What goes wrong in a user's own code, told as such: which table, what, and where."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Literal

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from platform_assets.errors import PlatformError, users_line
from platform_assets.spark.tables.failures import failed_on_values
from platform_assets.spark.tables.staging import TransformError

_THEIRS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Some are PySpark's as well: what a function of it was called with."""
_NOT_THEIRS = (PlatformError, PySparkException, Py4JError, MemoryError)
"""A JVM that is gone: whoever called Spark is not to blame."""


@contextmanager
def users_code(table: str, part: Literal["rules", "transform"] = "transform") -> Iterator[None]:
    """Explain what goes wrong in the rules or the transform of a table, within, by table, part and line."""
    try:
        yield
    except AnalysisException as error:
        raise _explained(table, part, first_line(error), error) from error
    except _THEIRS as error:
        raise _explained(table, part, f"{type(error).__name__}: {error}", error) from error
    except _NOT_THEIRS:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC or _met_in_spark(error):
            raise
        raise _explained(table, part, f"{type(error).__name__}: {error}", error) from error
    except (Exception, SystemExit) as error:
        raise _explained(table, part, f"{type(error).__name__}: {error}", error) from error


@contextmanager
def values_explained(table: str, days: Collection[date]) -> Iterator[None]:
    """Around whatever computes rows of some days by a table's contract and transform."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if (said := failed_on_values(error)) is None:
            raise
        first, last = min(days), max(days)
        of_days = f"{first}" if first == last else f"one of the days {first}..{last}"
        raise TransformError(
            f"What computes {table} fails on a value of {of_days}: {said}",
            "Correct its transform, or have a rule quarantine such rows; none of these days was published. "
            "`platform-assets stale` shows what waits.",
        ) from error


def first_line(error: AnalysisException) -> str:
    """Return what Spark says, without the plan that it shows below."""
    return str(error).strip().partition("\n")[0]


def _met_in_spark(error: OSError) -> bool:
    """Return whether an error comes from the connection to the JVM, and not from a file or server of the user's."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(module.partition(".")[0] in ("pyspark", "py4j") for module in modules)


def _explained(table: str, part: str, what: str, error: BaseException) -> TransformError:
    line = users_line(error)
    where = f" ({line})" if line else ""
    return TransformError(
        f"{table} cannot be computed by its {part}{where}: {what}",
        "Correct it; no day of the table was published by it. `platform-assets stale` shows what waits.",
    )
