"""What a Parquet file becomes: by its pages, and where values repeat by counting them, whatever the footer says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from platform_assets.sources.limits import Limits
from platform_assets.sources.pages import PageError, pages

_MOST_PAGES = 1_000_000
_LARGEST_PAGE = 1 << 29
"""Bytes of a page, for all of which whoever reads it makes room at once."""
_AT_ONCE = 8192
"""Rows of which texts are looked at together; of repeated ones each is held once."""


def becomes_too_much(file: Path, parquet: pq.ParquetFile, size: int, limits: Limits) -> str | None:
    """Which bound a file passes when it is unpacked, if it does; known codecs only.

    Args:
        file: where it is.
        parquet: the same, opened.
        size: bytes of the file.
        limits: of what it may become.

    Raises:
        ArrowException: it is corrupt.
        OSError: it cannot be read.
    """
    dictionaries: dict[int, int] = {}
    unpacked = 0
    try:
        with file.open("rb") as stream:
            for count, page in enumerate(pages(stream, parquet.metadata), 1):
                if count > _MOST_PAGES:
                    return f"has more than {_MOST_PAGES:,} pages; write larger ones"
                if page.unpacked > _LARGEST_PAGE:
                    return f"has a page of {page.unpacked:,} bytes, more than {_LARGEST_PAGE:,}; write smaller ones"
                unpacked += page.unpacked
                if reason := limits.unpacks_too_far(unpacked, size):
                    return reason
                if page.is_dictionary:
                    dictionaries[page.column] = max(page.unpacked, dictionaries.get(page.column, 0))
    except PageError:
        return "is corrupt: a page of it makes no sense"
    most = limits.repeated_bytes(size)
    texts = [column for column, largest in dictionaries.items() if _values(parquet, column) * largest > most]
    names = [parquet.schema.column(n).path for n in texts if parquet.schema.column(n).physical_type == "BYTE_ARRAY"]
    return limits.repeats_too_much(_repeated(file, names, most), size) if names else None


def _values(parquet: pq.ParquetFile, column: int) -> int:
    metadata = parquet.metadata
    return sum(int(metadata.row_group(n).column(column).num_values) for n in range(metadata.num_row_groups))


def _repeated(file: Path, names: list[str], most: int) -> int:
    """Bytes of all values of some columns, as far as they are worth counting."""
    parquet = pq.ParquetFile(file, read_dictionary=names, pre_buffer=False)
    total = 0
    for batch in parquet.iter_batches(_AT_ONCE, columns=names):
        total += sum(_bytes(leaf) for column in batch.columns for leaf in _leaves(column))
        if total > most:
            break
    return total


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The arrays of plain values within one that may be nested."""
    type_ = values.type
    if pa.types.is_struct(type_):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(type_):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        yield from _leaves(values.flatten())
    else:
        yield values


def _bytes(values: pa.Array) -> int:
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.cast(pc.binary_length(values.dictionary), pa.int64())
    return int(pc.sum(pc.take(lengths, values.indices)).as_py() or 0)
