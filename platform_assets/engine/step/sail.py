"""Work of a step done by Sail, of a table that is admitted to it; what goes wrong with it is Spark's to say."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import TypeVar

from pyspark.errors import PySparkException

from platform_assets.engine.step.repeatability import NotRepeatableError
from platform_assets.settings import Settings
from platform_assets.spark.sail.server import ended_at_standstill
from platform_assets.spark.sail.session import GONE, MEMORY, columns_for, sail_session, server_of, stop_sail
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.staging import TransformError

_log = getLogger(__name__)
_T = TypeVar("_T")
_ENDS_WITHIN_S = 2.0
"""Between the moment in which it does not answer any more and the one in which the process is gone."""


def by_sail(settings: Settings, work: Callable[[SparkOnDemand], _T]) -> _T | None:
    """What comes of work; None where Sail cannot do it, or not with its memory, or is gone, or stood still.

    No transform is refused for that, and no command ends: Spark does the work.

    Args:
        settings: to start it with.
        work: to be done with the session that it is given.
    """
    session = sail_session(settings)
    server = server_of(session)
    try:
        with columns_for("sail"), ended_at_standstill(server):
            return work(lambda: session)
    except (PySparkException, TransformError, NotRepeatableError) as error:
        why = "had too little memory" if MEMORY.search(str(error)) else server.ended_within(_ENDS_WITHIN_S)
        if why or GONE.search(str(error)):
            _log.warning(
                "Sail %s, so Spark computes these days and the rest of the table; PLATFORM_SAIL_MEMORY (%s now) "
                "gives more.",
                why or "does not answer any more",
                settings.sail_memory,
            )
            stop_sail()  # Spark needs what it holds
        return None
