"""Spark for commands that compute: started when it is first needed, stopped by the command that started it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.cli.progress import telling
from platform_assets.errors import PlatformError
from platform_assets.installed import refuse_another_pyspark
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from platform_assets.spark.session.on_demand import SparkOnDemand


@contextmanager
def session_on_demand(
    settings: Settings, progress: OnProgress, *, brief: bool = False, at_once: bool = False
) -> Iterator[SparkOnDemand]:
    """Give a function that returns the session; one that this process had before is left running.

    Args:
        brief: whether it will have little to do.
        at_once: whether it is going to be needed: it then starts while the command does other things.
    """
    refuse_another_pyspark()
    from pyspark import SparkContext

    import_module("platform_assets.spark.session.on_demand")  # by it whoever tells how far the command is asks Spark
    from platform_assets.spark.sail.session import stop_sail
    from platform_assets.spark.session.session import create_session, stop_session
    from platform_assets.spark.tables.failures import note_what_java_says
    from platform_assets.spark.tables.lost import lost_spark_explained

    was_there = SparkContext._active_spark_context is not None
    with ThreadPoolExecutor(1) as starter:
        starting: list[Future[SparkSession]] = []

        def start() -> Future[SparkSession]:
            if not starting:
                starting.append(starter.submit(create_session, settings, brief=brief, progress=progress))
            return starting[0]

        def session() -> SparkSession:
            return start().result()

        try:
            if at_once and settings.engine == "spark":  # else perhaps nothing needs it
                start()
            with lost_spark_explained(settings), quiet_connection():
                yield session
        except Exception as error:
            if not isinstance(error, PlatformError):
                note_what_java_says(error, settings)
            raise
        finally:
            stop_sail()
            for begun in starting:
                if begun.exception() is None and not was_there:
                    with meanwhile(progress, "stopping Spark"):
                        stop_session(begun.result())


@contextmanager
def computing(
    settings: Settings, label: str, *, brief: bool = False, at_once: bool = False
) -> Iterator[tuple[SparkOnDemand, OnProgress]]:
    """Compute with Spark at hand, and tell how far it is; the rest as for `session_on_demand`."""
    with telling(label) as progress, session_on_demand(settings, progress, brief=brief, at_once=at_once) as spark:
        yield spark, progress


@contextmanager
def quiet_connection() -> Iterator[None]:
    """Spare people the traces of a Java that is gone, or that the terminal interrupted, too: what failed is raised."""
    root, connection = logging.getLogger(), logging.getLogger("py4j")
    propagates, connection.propagate = connection.propagate, False
    root.addFilter(_is_of_no_connection)
    try:
        yield
    except KeyboardInterrupt:
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process")
        raise
    finally:
        root.removeFilter(_is_of_no_connection)
        connection.propagate = propagates


def _is_of_no_connection(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
