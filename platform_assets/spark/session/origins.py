"""Where in somebody's code a column was made, as Spark tells with what goes wrong in it while rows are computed.

PySpark asks the JVM eight times to note it, for every column and every part of one: most of all calls of a small
refresh. So runs note it for transforms alone. A line of this package in its place would help nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from pyspark.errors import utils

_IS_NOTED = "_enable_debugging_cache"
"""What PySpark remembers of the session's `spark.python.sql.dataFrameDebugging.enabled` once it has asked for it."""


def note_no_origins() -> None:
    """Have this process note none."""
    setattr(cast("Any", utils), _IS_NOTED, False)


@contextmanager
def origins_noted() -> Iterator[None]:
    """Note those of columns that are made within, unless the session's settings say otherwise."""
    before = getattr(utils, _IS_NOTED, None)
    setattr(cast("Any", utils), _IS_NOTED, None)
    try:
        yield
    finally:
        setattr(cast("Any", utils), _IS_NOTED, before)
