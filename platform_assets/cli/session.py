"""Start Spark for commands that compute, when first needed, and open Dagster's storage for `up`."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.cli.progress import telling
from platform_assets.errors import PlatformError, led_to
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.project import project_or_installed
from platform_assets.settings import Settings, project_root

if TYPE_CHECKING:
    import dagster as dg
    from pyspark.sql import SparkSession

    from platform_assets.spark.session.on_demand import SparkOnDemand


@contextmanager
def session_on_demand(
    settings: Settings, progress: OnProgress, *, brief: bool = False, at_once: bool = False
) -> Iterator[SparkOnDemand]:
    """Return a function that returns the session; a session that existed before is left running.

    Args:
        brief: whether little will be computed.
        at_once: whether it is certainly needed: it then starts while the command does other things.
    """
    # First, since it refuses another PySpark. The progress display asks Spark through it.
    import_module("platform_assets.spark.session.on_demand")
    from pyspark import SparkContext

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
    """Compute with Spark on demand and show progress; otherwise like `session_on_demand`."""
    with telling(label) as progress, session_on_demand(settings, progress, brief=brief, at_once=at_once) as spark:
        yield spark, progress


@contextmanager
def quiet_connection() -> Iterator[None]:
    """Hide the tracebacks of a JVM that is gone or was interrupted by the terminal; the actual error is raised."""
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


URL = "DAGSTER_POSTGRES_URL"
"""The variable that docs/postgresql.md has Dagster read."""
_OF_SERVER = ("dagster_postgres", "psycopg2")
_HOW = f"{URL}=postgresql://user:password@host:5432/database"


class DagsterStorageError(PlatformError):
    """dagster.yaml cannot be used, or not without a variable that is not set."""


@contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open the instance of a folder with a `dagster.yaml`; explain why a storage server fails, raise other errors."""
    import dagster as dg

    root = logging.getLogger()
    root.addFilter(_says_more_than_that_it_tries_again)
    try:
        instance = dg.DagsterInstance.from_config(str(home))
    except Exception as error:
        if explained := storage_error(error, os.environ):
            raise explained from None
        raise
    finally:
        root.removeFilter(_says_more_than_that_it_tries_again)
    with instance:
        yield instance


def storage_error(error: BaseException, environ: Mapping[str, str]) -> DagsterStorageError | None:
    """Explain why Dagster's storage could not be opened; None if the error is not from a database server."""
    chain = list(led_to(error))
    if any(URL in str(one) and "is not set" in str(one) for one in chain):
        return DagsterStorageError(
            f"dagster.yaml has Dagster's storage where {URL} says, which is not set.", f"Set {_HOW}."
        )
    if any(isinstance(one, ImportError) and "dagster_postgres" in str(one) for one in chain):
        return DagsterStorageError(
            "dagster.yaml has Dagster's storage on PostgreSQL, whose packages are not installed.",
            "Install them: uv sync --inexact --extra postgres, or pip install 'platform-assets[postgres]'.",
        )
    if not any(type(one).__module__.split(".")[0] in _OF_SERVER for one in chain):
        return None
    return DagsterStorageError(
        f"Dagster's storage does not answer or refuses: {_driver_words(chain, environ)}.",
        f"Check that the server runs, that user and database exist, and {_HOW}; special characters of the password are "
        "percent-encoded.",
    )


def _says_more_than_that_it_tries_again(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Retrying failed database connection")


def _driver_words(chain: list[BaseException], environ: Mapping[str, str]) -> str:
    """Return the driver's message in a line and without the password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from platform_assets.lakehouse.errors import driver_message

    drivers = [one for one in chain if type(one).__module__.startswith("psycopg2")]
    try:
        url = make_url(environ.get(URL, "postgresql://"))
    except ArgumentError:
        return "its URL cannot be understood"
    return driver_message((drivers or chain)[-1], url)


def dagster_home(settings: Settings) -> Path:
    """Return the folder for `DAGSTER_HOME`, and change to the project's root.

    The project's `dagster.yaml`, or the installation's, names storage relative to the working directory. For a state
    folder elsewhere a copy with that folder's path is kept in it, so that platforms never share a storage by accident.
    """
    root = project_root()
    os.chdir(root)
    file = project_or_installed("dagster.yaml", root)
    if settings.state == root / ".platform" and file.parent == root:
        (settings.state / "dagster").mkdir(parents=True, exist_ok=True)
        return root
    home = settings.state / "dagster-home"
    home.mkdir(parents=True, exist_ok=True)
    text = file.read_text(encoding="utf-8")
    (home / "dagster.yaml").write_text(text.replace(".platform/", f"{settings.state}/"), encoding="utf-8")
    return home
