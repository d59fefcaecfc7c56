"""Parquet files of the lake, opened where they lie: what is read of them is their end, and the columns asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from platform_assets.lakehouse.storage.location import Location

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def opened(file: Location) -> pq.ParquetFile:
    """A Parquet file, to be closed by whoever asks.

    Raises:
        OSError: it is not there or cannot be read.
        pyarrow.ArrowInvalid: it is torn or no Parquet file.
    """
    import pyarrow.parquet as pq  # which takes longer to import than most commands need in all

    filesystem, path = file.arrow()
    return pq.ParquetFile(path, filesystem=filesystem)
