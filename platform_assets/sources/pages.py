"""The pages of a Parquet file, by what each says of itself: a footer may say anything, pages are what readers unpack.

Whoever reads a page makes room for as many bytes as its header says, and no more comes out of it. A header is a
structure of Thrift's compact protocol; of its fields only sizes, numbers of values and encodings matter here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow.parquet as pq

_BEGINNING = 1 << 12
"""Bytes in which most headers end; one with long statistics does not."""
_LONGEST_HEADER = 1 << 24
_DEEPEST = 16
_DICTIONARY = 2
"""The type of a page that holds each value of its column once, however often it comes."""
_OF_VALUES = 5, 8
"""Fields with what a page of values says of them, in its older and its newer form."""
_ENCODING = {5: 2, 8: 4}
_DELTA_BYTE_ARRAY = 7
"""The encoding of texts of which each says only how much of the one before it begins with, and what comes then."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = frozenset({4, 5, 6})


class PageError(Exception):
    """A page whose header makes no sense."""


@dataclass(frozen=True)
class Page:
    """What a page says of itself.

    Args:
        group: of rows that it belongs to.
        column: which of the file it belongs to, by its place.
        unpacked: bytes.
        values: how many of its column's it has, those that are null included; none in a dictionary.
        is_dictionary: whether each of its values may come any number of times.
        is_delta: whether a text in it may begin with any of the one before, any number of times.
    """

    group: int
    column: int
    unpacked: int
    values: int
    is_dictionary: bool
    is_delta: bool


def pages(stream: BinaryIO, metadata: pq.FileMetaData) -> Iterator[Page]:
    """Every page of a file, in the order of its row groups and columns; only headers are read.

    Raises:
        PageError: one makes no sense.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            at = chunk.data_page_offset
            before = chunk.dictionary_page_offset if chunk.has_dictionary_page else 0
            # A column without values may have a dictionary and no page of data.
            at = before if before and (before < at or not at) else at
            end = at + chunk.total_compressed_size
            while at < end:
                page, length = _page(stream, at, number, column)
                if length > end - at:
                    raise PageError
                yield page
                at += length


def _page(stream: BinaryIO, at: int, group: int, column: int) -> tuple[Page, int]:
    """The page that begins there, and bytes of it with its header."""
    if at < 0:
        raise PageError
    size = _BEGINNING
    while True:
        stream.seek(at)
        content = stream.read(size)
        reader = _Compact(content)
        try:
            found, within = reader.numbers(_OF_VALUES)
        except IndexError:
            if len(content) < size or size >= _LONGEST_HEADER:
                raise PageError from None
            size <<= 4
            continue
        try:
            kind, unpacked, packed = found[1], found[2], found[3]
        except KeyError:
            raise PageError from None
        said = [(part.get(1, 0), part.get(_ENCODING[field])) for field, part in within.items()]
        values = max((count for count, _ in said), default=0)
        if unpacked < 0 or packed < 0 or values < 0:
            raise PageError
        is_delta = any(encoding == _DELTA_BYTE_ARRAY for _, encoding in said)
        return Page(group, column, unpacked, values, kind == _DICTIONARY, is_delta), reader.at + packed


class _Compact:
    """Reads a structure of Thrift's compact protocol, of which it keeps numbers.

    Args:
        content: begins with it. An IndexError says that it ends too early.
    """

    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content

    def numbers(self, of: Collection[int] = ()) -> tuple[dict[int, int], dict[int, dict[int, int]]]:
        """The fields of the structure that are numbers, by their identifiers, and those of some structures in it."""
        found: dict[int, int] = {}
        within: dict[int, dict[int, int]] = {}
        for field, type_ in self._fields():
            if type_ in _NUMBERS:
                found[field] = self._zigzag()
            elif type_ == _STRUCT and field in of:
                within[field], _ = self.numbers()
            else:
                self._skip(type_, 0)
        return found, within

    def _fields(self) -> Iterator[tuple[int, int]]:
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            yield field, head & 15

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise PageError

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, type_: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise PageError
        if type_ in _NUMBERS:
            self._varint()
        elif type_ == _BYTE:
            self.at += 1
        elif type_ == _DOUBLE:
            self.at += 8
        elif type_ == _BINARY:
            length = self._varint()
            self.at += length
        elif type_ == _STRUCT:
            for _, within in self._fields():
                self._skip(within, depth + 1)
        elif type_ in {_LIST, _SET}:
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            self._skip_all(count, (head & 15,), depth)
        elif type_ == _MAP:
            if count := self._varint():
                head = self._byte()
                self._skip_all(count, (head >> 4, head & 15), depth)
        elif type_ not in {_TRUE, _FALSE}:
            raise PageError

    def _skip_all(self, count: int, types: tuple[int, ...], depth: int) -> None:
        for _ in range(count):
            if self.at > len(self._content):
                raise IndexError
            for type_ in types:
                # Within lists and maps, unlike fields, a truth takes a byte of its own.
                self._skip(_BYTE if type_ in {_TRUE, _FALSE} else type_, depth + 1)
