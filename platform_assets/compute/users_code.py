"""What goes wrong in a user's own code, told as such: which table, what, and where."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from platform_assets.compute.staging import TransformError
from platform_assets.errors import PlatformError

_NOT_THEIRS = (PlatformError, PySparkException, Py4JError, OSError, MemoryError)
"""A disk that is full, a JVM that is gone: whoever called Spark is not to blame."""


@contextmanager
def users_code(table: str) -> Iterator[None]:
    """Around the rules and the transform of a table.

    Raises:
        TransformError: they name what is not there, or raise an error of their own.
    """
    try:
        yield
    except AnalysisException as error:
        raise _explained(table, str(error).partition("\n")[0], error) from error
    except _NOT_THEIRS:
        raise
    except Exception as error:
        raise _explained(table, f"{type(error).__name__}: {error}", error) from error


def _explained(table: str, what: str, error: Exception) -> TransformError:
    # The last place outside of libraries and of this package's rooms: theirs are on the way there and back.
    here = Path(__file__).parents[1]
    rooms = (here / "compute", here / "engine", here / "contracts")
    places = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
        and not any(Path(frame.filename).is_relative_to(room) for room in rooms)
    ]
    where = f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
    return TransformError(
        f"{table} cannot be computed by its rules and its transform{where}: {what}",
        "Correct it; no day of the table was published by it. `platform-assets stale` shows what waits.",
    )
