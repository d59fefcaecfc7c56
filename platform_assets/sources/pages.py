"""The pages of a Parquet file, by what each says of itself: a footer may say anything, pages are what readers unpack.

Whoever reads a page makes room for as many bytes as its header says, and no more comes out of it. A header is a
structure of Thrift's compact protocol; of its fields only the sizes matter here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow.parquet as pq

_BEGINNING = 1 << 12
"""Bytes in which most headers end; one with long statistics does not."""
_LONGEST_HEADER = 1 << 24
_DEEPEST = 16
_DICTIONARY = 2
"""The type of a page that holds each value of its column once, however often it comes."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = frozenset({4, 5, 6})


class PageError(Exception):
    """A page whose header makes no sense."""


@dataclass(frozen=True)
class Page:
    """What a page says of itself.

    Args:
        column: which of the file it belongs to, by its place.
        unpacked: bytes.
        is_dictionary: whether its values may come any number of times.
    """

    column: int
    unpacked: int
    is_dictionary: bool


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
                kind, unpacked, packed, length = _header(stream, at)
                if length + packed > end - at:
                    raise PageError
                yield Page(column, unpacked, kind == _DICTIONARY)
                at += length + packed


def _header(stream: BinaryIO, at: int) -> tuple[int, int, int, int]:
    """Type, bytes unpacked and packed of the page that begins there, and bytes of its header."""
    if at < 0:
        raise PageError
    size = _BEGINNING
    while True:
        stream.seek(at)
        content = stream.read(size)
        reader = _Compact(content)
        try:
            found = reader.numbers()
        except IndexError:
            if len(content) < size or size >= _LONGEST_HEADER:
                raise PageError from None
            size <<= 4
            continue
        try:
            kind, unpacked, packed = found[1], found[2], found[3]
        except KeyError:
            raise PageError from None
        if unpacked < 0 or packed < 0:
            raise PageError
        return kind, unpacked, packed, reader.at


class _Compact:
    """Reads a structure of Thrift's compact protocol, of which it keeps the numbers at the top.

    Args:
        content: begins with it. An IndexError says that it ends too early.
    """

    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content

    def numbers(self) -> dict[int, int]:
        """The fields of the structure that are numbers, by their identifiers."""
        found: dict[int, int] = {}
        for field, type_ in self._fields():
            if type_ in _NUMBERS:
                found[field] = self._zigzag()
            else:
                self._skip(type_, 0)
        return found

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
