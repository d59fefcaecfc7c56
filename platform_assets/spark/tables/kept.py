"""Frames that are computed once and read several times, and survive the loss of a machine that had them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.cluster import is_one_process

Keep = Callable[[DataFrame], DataFrame]
"""Gives a frame with the same rows that is computed only once."""


@contextmanager
def kept_frames() -> Iterator[Keep]:
    """Keep frames as long as this is open.

    Where Spark is one process, they are cut from what they were computed from, which spares planning that again. On a
    cluster that would lose them with an executor that ends: there Spark remembers how to compute what was lost.
    """
    persisted: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        if is_sail(frame.sparkSession):
            return frame  # it keeps none, and computes them again
        if is_one_process(frame.sparkSession):
            return frame.localCheckpoint()
        persisted.append(frame.persist())
        return persisted[-1]

    try:
        yield keep
    finally:
        for frame in persisted:
            frame.unpersist()
