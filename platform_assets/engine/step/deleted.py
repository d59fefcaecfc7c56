"""Files that go while a step reads them: an erasure deletes at once what readers of before could still see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.horizon import horizon_of


class DeletedMeanwhileError(PlatformError):
    """What was being read was deleted; nothing that was made of it is published."""


@contextmanager
def deletion_explained(snapshot: LakeSnapshot, table: str) -> Iterator[None]:
    """Turn Spark's error about a missing file into what it is, where history was cut behind what is being read.

    Raises:
        DeletedMeanwhileError: the snapshot's release is none any more whose files are all there.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        horizon = horizon_of(snapshot.platform.lake)
        if horizon.has(snapshot.number):
            raise
        is_erasure = horizon.cut.before == horizon.before
        by = f", by the erasure in publication {horizon.cut.publication}" if is_erasure else ""
        raise DeletedMeanwhileError(
            f"What days of {table} were being computed from was deleted meanwhile{by}: files that only releases before "
            f"{horizon.before} need, and release {snapshot.number} was read.",
            "Nothing of it was published. Run the same again: it reads what is there now.",
        ) from error
