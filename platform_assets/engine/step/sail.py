"""Work of a step done by Sail, of a table that is admitted to it; what goes wrong with it is Spark's to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

from platform_assets.engine.step.repeatability import NotRepeatableError
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import columns_for, is_lost, sail_session, server_of
from platform_assets.spark.sail.standstill import ended_at_standstill
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.staging import TransformError

_T = TypeVar("_T")


def by_sail(settings: Settings, work: Callable[[SparkOnDemand], _T]) -> _T | None:
    """What comes of work; None where it cannot be done by Sail, so that no transform is refused for that.

    Args:
        settings: to start it with.
        work: to be done with the session that it is given.

    Raises:
        PySparkException: Sail is gone or stood still, which is told as such.
    """
    session = sail_session(settings)
    try:
        with columns_for("sail"), ended_at_standstill(server_of(session)):
            return work(lambda: session)
    except (PySparkException, TransformError, NotRepeatableError) as error:
        if is_lost(error):
            raise
        return None
