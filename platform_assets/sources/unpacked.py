"""What a Parquet file becomes: by its pages, and where values repeat by counting them, whatever the footer says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from platform_assets.sources.limits import Limits
from platform_assets.sources.pages import Page, PageError, pages
from platform_assets.sources.parquet import rows_of

_MOST_PAGES = 1_000_000
_LARGEST_PAGE = 1 << 29
"""Bytes of a page, for all of which whoever reads it makes room at once."""
_AT_ONCE = 256
"""Rows that are looked at together, each of which may be long."""
_AT_ONCE_OF_FEW = 8192
"""Rows that are looked at together where a value that comes again and again is held once."""
_LONG = 1 << 28
"""Bytes that a row may have in all its columns before anybody looks how many it has."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes that a value takes in memory at least; of a text, where it ends."""


class _Column:
    """What pages say of a column.

    Args:
        schema: of it, as the footer says.
    """

    def __init__(self, schema: pq.ColumnSchema) -> None:
        self.path: str = schema.path
        self.is_text = schema.physical_type == "BYTE_ARRAY"
        self.values = 0
        self.repeated = 0
        """Bytes of the largest page of which anything may come any number of times."""
        self.is_delta = False
        self._width: int = _WIDTHS.get(schema.physical_type, schema.length)
        self.is_list = schema.max_repetition_level > 0
        self._largest = 0
        self.of_groups: dict[int, int] = {}
        """How many values it has, by group of rows."""

    def take(self, page: Page) -> None:
        """Count one of its pages."""
        self.values += page.values
        self.of_groups[page.group] = self.of_groups.get(page.group, 0) + page.values
        self._largest = max(self._largest, page.unpacked)
        self.is_delta |= page.is_delta
        if page.is_dictionary or page.is_delta:
            self.repeated = max(self.repeated, page.unpacked)

    @property
    def least(self) -> int:
        """Bytes that its values become, of texts without what is in them."""
        return self.values * self._width

    @property
    def of_a_row(self) -> int:
        """Bytes that it may have in one row: a row lies in one group, and a value in one page."""
        text = self._largest if self.is_text else self._width
        return text + max(self.of_groups.values(), default=0) * self._width if self.is_list else text


def becomes_too_much(stream: BinaryIO, parquet: pq.ParquetFile, size: int, limits: Limits) -> str | None:
    """Which bound a file passes when it is unpacked, if it does; known codecs only.

    Args:
        stream: of the file.
        parquet: the same, opened.
        size: bytes of the file.
        limits: of what it may become.

    Raises:
        ArrowException: it is corrupt.
        OSError: it cannot be read.
    """
    columns = [_Column(parquet.schema.column(n)) for n in range(len(parquet.schema))]
    unpacked = 0
    try:
        for count, page in enumerate(pages(stream, parquet.metadata), 1):
            if count > _MOST_PAGES:
                return f"has more than {_MOST_PAGES:,} pages; write larger ones"
            if page.unpacked > _LARGEST_PAGE:
                return f"has a page of {page.unpacked:,} bytes, more than {_LARGEST_PAGE:,}; write smaller ones"
            unpacked += page.unpacked
            if reason := limits.unpacks_too_far(unpacked, size):
                return reason
            columns[page.column].take(page)
    except PageError:
        return "is corrupt: a page of it makes no sense"
    if _counts_otherwise(columns, parquet.metadata):
        return "is corrupt: its footer counts other rows than its pages have"
    if reason := limits.repeats_too_much(sum(column.least for column in columns), size):
        return reason
    most = limits.repeated_bytes(size)
    texts = [column for column in columns if column.is_text and column.values * column.repeated > most]
    repeated = 0
    # Of texts in deltas Arrow makes no dictionary: each is held as often as it is meant.
    for is_delta, at_once in ((False, _AT_ONCE_OF_FEW), (True, _AT_ONCE)):
        names = [column.path for column in texts if column.is_delta is is_delta]
        repeated += _repeated(stream, names, at_once, most, once=not is_delta) if names else 0
        if reason := limits.repeats_too_much(repeated, size):
            return reason
    is_long = sum(column.of_a_row for column in columns) > _LONG
    suspects = [column.path for column in columns if is_long or column.of_a_row > limits.line_bytes]
    return _long_row(stream, suspects, limits) if suspects else None


def _counts_otherwise(columns: list[_Column], metadata: pq.FileMetaData) -> bool:
    """Whether pages have more or fewer values than the footer says, with which Spark fails while it reads them."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return sum(group.num_rows for group in groups) != rows_of(metadata) or any(
        column.of_groups.get(number, 0) != group.column(place).num_values
        or (not column.is_list and group.num_rows != group.column(place).num_values)
        for number, group in enumerate(groups)
        for place, column in enumerate(columns)
    )


def _long_row(stream: BinaryIO, names: list[str], limits: Limits) -> str | None:
    """That a row has more bytes in some columns than a line may have, if so."""
    row = 0
    for batch in pq.ParquetFile(stream, pre_buffer=False).iter_batches(_AT_ONCE, columns=names):
        if batch.nbytes > limits.line_bytes:
            for at in range(len(batch)):
                if reason := limits.row_too_long(batch.slice(at, 1).nbytes, row + at + 1):
                    return reason
        row += len(batch)
    return None


def _repeated(stream: BinaryIO, names: list[str], at_once: int, most: int, *, once: bool) -> int:
    """Bytes of all values of some columns, as far as they are worth counting.

    Args:
        stream: of the file.
        names: of the columns.
        at_once: rows that are looked at together.
        most: bytes that are worth counting.
        once: whether to hold each value once.
    """
    parquet = pq.ParquetFile(stream, read_dictionary=names if once else [], pre_buffer=False)
    total = 0
    for batch in parquet.iter_batches(at_once, columns=names):
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
