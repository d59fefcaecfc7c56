"""Read a text file as it streams past: unpack it, count its lines, decode it, and write it as Spark can split it.

Lines end with a line feed, a carriage return or both. Those that Spark drops as blank do not count.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO

from platform_assets.contracts.landing import COMPRESSED
from platform_assets.records.raw_rows import MARK
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.records import Records, on_lines

CHUNK = 1 << 18
"""Bytes read at a time; short lines take some twenty times as much."""

AS_UTF_8 = "write it as UTF-8"
UNMARKED_UTF_16 = f"looks like UTF-16 text without its mark, with a zero byte beside each letter; {AS_UTF_8}"

_BLANK = bytes(range(33))
"""What Spark takes for white space when it drops blank lines."""
_WITHIN_LINES = _BLANK.translate(None, b"\r\n")

_BEGINNING = b"\x1f\x8b"
_GZIP = 31
"""For zlib: with the header and the end that gzip has, and a window as large as any."""
_AT_ONCE = 1 << 14
_MOST_MEMBERS = 200_000
_CUT_SHORT = "is gzip that was cut short; deliver it whole"
_CHUNK = 1 << 20
_BLANK = bytes(range(33))
_LINE_END = f"{MARK}n".encode()


class EncodingError(Exception):
    """A file is not UTF-8.

    Args:
        line: where, from 1, counted by line feeds.
        byte: that no text has there.
        begins: the first bytes of the file, by which some other encodings say what they are.
    """

    def __init__(self, line: int, byte: int, begins: bytes) -> None:
        super().__init__(line, byte, begins)
        self.line = line
        self.byte = byte
        self.is_utf16 = begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


@dataclass(frozen=True)
class Lines:
    """Some whole lines of a file that are not blank.

    Args:
        before: how many came before them.
        bare: the lines without any white space.
        content: where they come from, blank lines included.
    """

    before: int
    bare: Sequence[bytes]
    content: bytes

    def whole(self) -> list[bytes]:
        """Return the lines as they are."""
        lines = self.content.splitlines()
        return lines if len(lines) == len(self.bare) else [line for line in lines if line.strip(_BLANK)]


@dataclass(frozen=True)
class Scan:
    """What a file turned out to hold.

    Args:
        lines: how many are not blank, up to where a bound was passed.
        beginning: of the first of them.
        wrong: what is wrong with the first that cannot be taken, or with the file from there on.
    """

    lines: int
    beginning: bytes
    wrong: str | None


Look = Callable[[Lines], str | None]
"""What is wrong with some lines, if anything."""


def scan(file: LandedFile, look: Look, records: Records | None = None, limits: Limits = Limits()) -> Scan:
    """Read a file once, to its end, or to where it is beyond a bound.

    Args:
        look: shown the lines until it finds something wrong. A line that is too long is wrong by itself.
        records: bring records that span lines onto one, where the format has such; its first line is a header.

    Raises:
        CompressionError: it says that it is compressed, and cannot be unpacked.
        EncodingError: it is not UTF-8, whatever else is wrong.
        LimitError: too much is in it.
        ChangedError, LinkError, OSError: it cannot be read, or is not what was listed.
    """
    decoder, splitter = _Decoder(), _Splitter(look, limits, headers=1 if records else 0)
    for chunk in chunks(file, limits, CHUNK):
        decoder.take(chunk)
        splitter.take(records.take(chunk) if records else chunk)
        if splitter.is_beyond:
            break
    else:
        decoder.take(b"", final=True)
        splitter.take(records.end() if records else b"")
        splitter.end()
    return Scan(splitter.count, splitter.beginning, splitter.wrong)


class _Decoder:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = 1
        self._begins = b""

    def take(self, chunk: bytes, *, final: bool = False) -> None:
        self._begins = self._begins or chunk[:2]
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            # It may begin with what was left of the chunk before: a part of a character, in which no line ends.
            line = self._line + error.object.count(b"\n", 0, error.start)
            raise EncodingError(line, error.object[error.start], self._begins) from None
        self._line += chunk.count(b"\n")


class _Splitter:
    def __init__(self, look: Look, limits: Limits, headers: int) -> None:
        self.count = 0
        self.beginning = b""
        self.wrong: str | None = None
        self.is_beyond = False
        """Whether a bound was passed, so that the rest is not worth reading."""
        self._look = look
        self._limits = limits
        self._headers = headers
        self._open = b""

    def take(self, content: bytes) -> None:
        for at in range(0, len(content), CHUNK):
            if self.is_beyond:
                return
            self._take(content[at : at + CHUNK])

    def _take(self, chunk: bytes) -> None:
        ends = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if ends:
            self._close(self._open + chunk[:ends])
            self._open = b""
        self._open += chunk[ends:]
        if len(self._open) > self._limits.line_bytes:
            # Blank or not: whoever looks for its end holds all of it.
            self.beginning = self.beginning or self._open.lstrip(_BLANK)[:CHUNK]
            self._end_at(
                f"has more than {self._limits.line_bytes:,} bytes in row {self.count + 1}, blank lines not counted; "
                "deliver shorter rows"
            )

    def end(self) -> None:
        if not self.is_beyond:
            self._close(self._open)

    def _close(self, content: bytes) -> None:
        # The white space of all lines at once: to strip each by itself takes several times as long.
        bare = list(filter(None, content.translate(None, _WITHIN_LINES).splitlines()))
        if bare and self.wrong is None:
            lines = Lines(self.count, bare, content)
            self.beginning = self.beginning or lines.whole()[0][:CHUNK]
            self.wrong = self._look(lines)
        self.count += len(bare)
        if reason := self._limits.too_many_rows(self.count - self._headers):
            self._end_at(reason)

    def _end_at(self, reason: str) -> None:
        self.wrong = self.wrong or reason
        self.is_beyond = True


class CompressionError(Exception):
    """What is in a file cannot be got out; the text says why."""


def is_compressed(file: Path) -> bool:
    """Return whether a file says that it is gzip."""
    return file.suffix.lower() == COMPRESSED


def holds_gzip(file: LandedFile) -> bool:
    """Return whether a file begins as gzip does, whatever its name."""
    with file.open() as stream:
        return stream.read(len(_BEGINNING)) == _BEGINNING


def chunks(file: LandedFile, limits: Limits, size: int) -> Iterator[bytes]:
    """Yield what is in a file, unpacked, piece by piece."""
    if not is_compressed(file.file):
        with file.open() as stream:
            while chunk := stream.read(size):
                yield chunk
        return
    if not file.size:
        raise CompressionError(_CUT_SHORT)
    if not holds_gzip(file):
        raise CompressionError(f"is not gzip, though its name ends with {COMPRESSED}")
    unpacked = 0
    with file.open() as packed:
        for chunk in _unpacked(packed, size):
            unpacked += len(chunk)
            if reason := limits.unpacks_too_far(unpacked, file.size):
                raise LimitError(reason)
            yield chunk


def _unpacked(packed: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield what is in all members of a gzip file; nothing may lie between or behind them, as for Java.

    Python's own reader passes over zeros and flags that Spark fails with, and at the end of each member it reads again
    what it had read, so that one of 20 bytes costs as much as one of 100,000.
    """
    content = packed.read(_AT_ONCE)
    for members in count(1):
        if members > _MOST_MEMBERS:
            raise CompressionError(f"has more than {_MOST_MEMBERS:,} members of gzip; write larger ones")
        if not _BEGINNING.startswith(content[: len(_BEGINNING)]):
            raise CompressionError("is damaged gzip: something else lies behind it")
        member = zlib.decompressobj(wbits=_GZIP)
        while not member.eof:
            if not content and not (content := packed.read(_AT_ONCE)):
                raise CompressionError(_CUT_SHORT)
            try:
                chunk = member.decompress(content, size)
            except zlib.error as error:
                raise CompressionError(f"is damaged gzip: {error}") from None
            content = member.unconsumed_tail
            if chunk:
                yield chunk
        content = member.unused_data or packed.read(_AT_ONCE)
        if not content:
            return


def lines_of(file: LandedFile, limits: Limits = Limits()) -> Iterator[bytes]:
    """Return the content of the copy, piece by piece.

    Args:
        file: CSV, or JSON lines, which have no record on several lines.
    """
    content = chunks(file, limits, _CHUNK)
    return on_lines(content) if file.format == "csv" else content


def line_numbers(file: LandedFile, rows: Collection[int], limits: Limits = Limits()) -> Iterator[tuple[int, int]]:
    """Yield in which line of a text file some of its rows begin, both counted from 1.

    Args:
        file: CSV, with its header, or JSON lines.
    """
    row, line, rest, last = -(file.format == "csv"), 1, b"", max(rows, default=0)
    for chunk in chain(lines_of(file, limits), [b"\n"]):
        *whole, rest = (rest + chunk).split(b"\n")
        for text in whole:
            row += bool(text.strip(_BLANK))
            if row in rows and text.strip(_BLANK):
                yield row, line
            if row >= last:
                return
            line += 1 + text.count(_LINE_END)
