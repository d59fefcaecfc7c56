"""Work of a step done by Sail, of a table that is admitted to it; what goes wrong with it is Spark's to say."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import TypeVar

from pyspark.errors import PySparkException

from platform_assets.engine.step.repeatability import NotRepeatableError
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import MEMORY, columns_for, is_lost, sail_session, server_of, stop_sail
from platform_assets.spark.sail.standstill import ended_at_standstill
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.staging import TransformError

_log = getLogger(__name__)
_T = TypeVar("_T")


def by_sail(settings: Settings, work: Callable[[SparkOnDemand], _T]) -> _T | None:
    """What comes of work; None where Sail cannot do it, or not with its memory: no transform is refused for that.

    Args:
        settings: to start it with.
        work: to be done with the session that it is given.

    Raises:
        PySparkException: Sail is gone or stood still, which is told as such.
    """
    session = sail_session(settings)
    try:
        with columns_for("sail"), ended_at_standstill(server_of(session)):
            done = work(lambda: session)
        if server_of(session).is_worn():
            stop_sail()
        return done
    except (PySparkException, TransformError, NotRepeatableError) as error:
        if is_lost(error):
            raise
        if MEMORY.search(str(error)):
            _log.warning(
                "Sail had too little memory, so Spark computes these days; PLATFORM_SAIL_MEMORY (%s now) gives more.",
                settings.sail_memory,
            )
            stop_sail()  # Spark needs what it holds
        return None
