"""Parquet files of the lake, opened in place: only the footer and the wanted columns are read.

Writers add a checksum to every page, so that damage is found even if the length is right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.storage.location import Location

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def opened(file: Location, *, once: Collection[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file, to be closed by the caller; its pages are checked against their checksums when read.

    Args:
        once: text columns to return as dictionaries, with each value once.
    """
    import pyarrow.parquet as pq  # which takes longer to import than most commands need in all

    filesystem, path = file.arrow()
    return pq.ParquetFile(path, filesystem=filesystem, read_dictionary=list(once), page_checksum_verification=True)


def row_batches(
    file: Location, rows: int, columns: Collection[str] | None = None, *, once: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    import pyarrow as pa

    try:
        with opened(file, once=once) as parquet:
            there = None if columns is None else [name for name in parquet.schema_arrow.names if name in columns]
            # Threads take longer over a small file than one does
            yield from parquet.iter_batches(rows, columns=there, use_threads=parquet.metadata.num_rows > rows)
    except (pa.ArrowException, OSError) as error:
        raise damaged(file, f"cannot be read ({str(error).splitlines()[0].rstrip('.')})") from error


def damaged(file: Location, problem: str) -> DamagedTableError:
    """Return the error for a damaged file."""
    return DamagedTableError(
        f"The file {file} {problem}.",
        "`platform-assets admin audit --read-all` names all that is damaged, and for each day what repairs it: a "
        "backup or, of silver and gold, the command that computes it again.",
    )


def other_length(file: Location, size: int) -> str:
    """Return the damage that is visible without opening the file."""
    there = file.size()
    if there == size:
        return ""
    return "is missing" if there is None else f"has {there:,} bytes; {size:,} were published"


def damage(file: Location, size: int) -> str:
    """Read every page of a published file and return what is wrong with it; empty if nothing is.

    Returns:
        What completes a sentence about the file: `is missing`, `has 5 bytes; 700 were published`.
    """
    import pyarrow as pa

    if problem := other_length(file, size):
        return problem
    try:
        with opened(file) as parquet:
            deque(parquet.iter_batches(use_threads=False), maxlen=0)  # reading them is the point
    except (pa.ArrowException, OSError) as error:
        return f"is damaged ({str(error).splitlines()[0].rstrip('.')})"
    return ""
