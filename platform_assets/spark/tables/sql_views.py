"""Make temporary views of all released tables in a Spark session, and say what a session lacks for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.sql_views import spark_view, statements, tables_without_view
from platform_assets.spark.session.configuration import TUNING

_OF_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
_BY_FOLDER = "spark.sql.runSQLOnFiles"
_NOT_FOUND = re.compile(
    "DATA_SOURCE_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY|DELTA_CONFIGURE_SPARK_SESSION"
)
_NO_FILES = re.compile(r'No FileSystem for scheme "(\w+)"')


def register_views(spark: SparkSession, lake: Lake, release: Release) -> None:
    """Show every table of a release as `<layer>_<table>`, and no table that came after it.

    Raises:
        DamagedTableError: files of that release are gone; the views are as they were.
        LakeError: with this session no lake can be read; the message says what it lacks.
    """
    with unreadable_session_told(spark):
        for statement in list(statements(lake, release, "spark")):
            spark.sql(statement)
    for table in tables_without_view(lake, release):
        spark.catalog.dropTempView(spark_view(table))


@contextmanager
def unreadable_session_told(spark: SparkSession) -> Iterator[None]:
    """Say so where something fails because of how the session was started, or because it was stopped.

    What it was started with is asked only then, and only where tables were not found: a platform that has Delta built
    in may start sessions in a way of its own.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if why := _why(spark, str(error)):
            raise why from error
        raise


def _why(spark: SparkSession, said: str) -> LakeError | None:
    if hasattr(spark, "_jsparkSession") and cast("Any", spark.sparkContext)._jsc is None:
        return LakeError("This Spark session was stopped.", "Take one that was not, or leave it to us.")
    if no_files := _NO_FILES.search(said):
        return LakeError(
            f"This Spark session has nothing by which {no_files[1]}:// is read.",
            "Stop the session and take the one that platform_assets.views() starts, or start yours as docs/readers.md "
            "says of a lake in a bucket.",
        )
    if not _NOT_FOUND.search(said):
        return None
    if lacking := [name for name in _OF_DELTA if TUNING[name] not in (spark.conf.get(name, "") or "")]:
        return LakeError(
            f"This Spark session was started without Delta Lake: {' and '.join(lacking)} do not name it.",
            "Stop the session and take the one that platform_assets.views() starts, or start yours with Delta's jar "
            f"and {', '.join(f'{name}={TUNING[name]}' for name in _OF_DELTA)}.",
        )
    if str(spark.conf.get(_BY_FOLDER, "true")).lower() == "false":
        return LakeError(
            f"This Spark session finds no table by its folder: it has {_BY_FOLDER}=false.",
            f"Set it first, and back afterwards: spark.conf.set({_BY_FOLDER!r}, 'true').",
        )
    return None
