"""A reader's own session that cannot read Delta, or nothing: Spark says that a table or a class is missing, not why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.lakehouse.errors import LakeError

_NEEDED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

_OF_NO_FILES = re.compile(r'No FileSystem for scheme "(\w+)"')
_BY_FOLDER = "spark.sql.runSQLOnFiles"


@contextmanager
def delta_is_missed(spark: SparkSession) -> Iterator[None]:
    """What fails here in a session that was not started with Delta, fails for that.

    Whether it was is asked only then: a platform that has Delta built in may start sessions in a way of its own.

    Raises:
        LakeError: names the settings that the session lacks, or says that it was stopped.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if hasattr(spark, "_jsparkSession") and cast("Any", spark.sparkContext)._jsc is None:
            raise LakeError("This Spark session was stopped.", "Take one that was not, or leave it to us.") from error
        if str(spark.conf.get(_BY_FOLDER, "true")).lower() == "false":
            raise LakeError(
                f"This Spark session finds no table by its folder: it has {_BY_FOLDER}=false.",
                f"Set it first, and back afterwards: spark.conf.set({_BY_FOLDER!r}, 'true').",
            ) from error
        if no_files := _OF_NO_FILES.search(str(error)):
            raise LakeError(
                f"This Spark session has nothing by which {no_files[1]}:// is read.",
                "Stop the session and take the one that platform_assets.views() starts, or start yours as "
                "docs/readers.md says of a lake in a bucket.",
            ) from error
        lacking = [name for name, value in _NEEDED.items() if value not in (spark.conf.get(name, "") or "")]
        if not lacking:
            raise
        raise LakeError(
            f"This Spark session was started without Delta Lake: {' and '.join(lacking)} do not name it.",
            "Stop the session and take the one that platform_assets.views() starts, or start yours with Delta's jar "
            f"and {', '.join(f'{name}={value}' for name, value in _NEEDED.items())}.",
        ) from error
