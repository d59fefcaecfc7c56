"""Whether files that executors wrote lie where this machine looks for them.

In a folder that one machine of a cluster has not mounted, or has another one in place of, its executors write without
an error, and the driver, which puts files in their place when all have written, never sees those. Only their number
tells, which tasks report and Spark adds up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from pyspark.sql import SparkSession

from platform_assets.contracts import DAY
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import is_object_store
from platform_assets.settings import Settings
from platform_assets.spark.session.cluster import computes_here, is_one_process
from platform_assets.spark.tables.failures import causes
from platform_assets.spark.tables.scans import shows_plans

_FILES = "number of written files"
_DESCRIPTION = "spark.job.description"
_COUNT = re.compile(r"(\d+) -> ([\d,]+)")
_MISSING = re.compile(r"FileNotFoundException: File (?:file:)?(/.+) does not exist")
_TODO = (
    "Mount the lake's folder at the same path on every machine of the cluster, or put the lake into an object store. "
    "Nothing was published of it."
)


class OtherFolderError(PlatformError):
    """Executors have another folder at the path of the lake's."""


def lies_elsewhere(error: Exception, settings: Settings) -> OtherFolderError | None:
    """What is to be told where a cluster's executor did not find a file that lies in the lake; None if it did."""
    if computes_here(settings) or is_object_store(settings.lake):
        return None
    missing = (found[1] for text in causes(error) if (found := _MISSING.search(text)))
    file = next((path for path in missing if Path(path).is_relative_to(settings.lake) and Path(path).exists()), None)
    return None if file is None else OtherFolderError(f"A machine of the cluster does not find {file}.", _TODO)


@contextmanager
def found_here(spark: SparkSession, folder: Location) -> Iterator[None]:
    """Around a write of Spark's to a folder: on a cluster, count the files.

    Not in an object store, which all see alike, nor over Spark Connect, which does not tell how many were written.

    Raises:
        OtherFolderError: fewer lie there than were written.
    """
    if not shows_plans(spark) or is_one_process(spark) or is_object_store(str(folder)):
        yield
        return
    context, mark = spark.sparkContext, f"writes {uuid4()}"
    before, said = _files_in(folder), context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, mark)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, cast("str", said))
    written, found = _files_written(spark, mark), _files_in(folder) - before
    if written is not None and found < written:
        raise OtherFolderError(
            f"Of {written:,} files that the cluster wrote into {folder}, {found:,} lie there: one of its machines has "
            "another folder at that path.",
            _TODO,
        )


def _files_in(folder: Location) -> int:
    return sum(path.startswith(f"{DAY}=") for path in folder.files())


def _files_written(spark: SparkSession, mark: str) -> int | None:
    """By the one execution that has a description; None where Spark keeps nothing of it."""
    session = cast("Any", spark)
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    known = session._jsparkSession.sharedState().statusStore()
    executions = known.executionsList()
    for at in reversed(range(executions.size())):
        execution = executions.apply(at)
        if execution.description() == mark:
            break
    else:
        return None
    named = (execution.metrics().apply(at) for at in range(execution.metrics().size()))
    ids = {int(metric.accumulatorId()) for metric in named if metric.name() == _FILES}
    values = str(known.executionMetrics(execution.executionId()).mkString("\n")).splitlines()
    counts = (_COUNT.fullmatch(value) for value in values)  # of times and sizes there are several lines
    found = [count[2] for count in counts if count and int(count[1]) in ids]
    return sum(int(text.replace(",", "")) for text in found) if found else None
