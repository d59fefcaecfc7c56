"""Spark for commands that compute: started when it is first needed, stopped when the command is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from platform_assets.cli.console import errors
from platform_assets.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_on_demand(settings: Settings, *, brief: bool = False) -> Iterator[Callable[[], SparkSession]]:
    """A function that gives the session.

    Args:
        settings: what to start it with.
        brief: whether it will have little to do.

    Raises:
        PlatformError: Java or Delta's jars are missing, or Spark did not start.
    """
    from platform_assets.compute.session import create_session, stop_session

    started: list[SparkSession] = []

    def session() -> SparkSession:
        if not started:
            with errors.status("starting Spark"):
                started.append(create_session(settings, brief=brief))
        return started[0]

    try:
        yield session
    finally:
        for found in started:
            stop_session(found)
