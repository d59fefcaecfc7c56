"""A text file as it streams past: its lines counted, its characters decoded, in memory that does not grow with it.

Lines end with a line feed, a carriage return or both. Those that Spark drops as blank do not count.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from platform_assets.sources.compressed import GZIP_RATIO, chunks
from platform_assets.sources.records import Records

CHUNK = 1 << 18
"""Bytes read at a time; short lines take some twenty times as much."""

LONGEST_LINE = 1 << 24
"""Bytes of a line that is taken: whoever looks at one, and makes a row of it, holds it whole."""

_BLANK = bytes(range(33))
"""What Spark takes for white space when it drops blank lines."""
_WITHIN_LINES = _BLANK.translate(None, b"\r\n")


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
        """The lines as they are."""
        lines = self.content.splitlines()
        return lines if len(lines) == len(self.bare) else [line for line in lines if line.strip(_BLANK)]


@dataclass(frozen=True)
class Scan:
    """What a file turned out to hold.

    Args:
        lines: how many are not blank.
        beginning: of the first of them.
        wrong: what is wrong with the first that cannot be taken.
    """

    lines: int
    beginning: bytes
    wrong: str | None


Look = Callable[[Lines], str | None]
"""What is wrong with some lines, if anything."""


def scan(file: Path, look: Look, records: Records | None = None, gzip_ratio: int = GZIP_RATIO) -> Scan:
    """Read a file once, to its end.

    Args:
        file: to read.
        look: shown the lines until it finds something wrong. A line that is too long is wrong by itself.
        records: bring records that span lines onto one, where the format has such.
        gzip_ratio: how many times as long as a compressed file its content may be.

    Raises:
        CompressionError: it says that it is compressed, and cannot be unpacked.
        EncodingError: it is not UTF-8, whatever else is wrong.
        OSError: it cannot be read.
    """
    decoder, splitter = _Decoder(), _Splitter(look)
    for chunk in chunks(file, gzip_ratio, CHUNK):
        decoder.take(chunk)
        splitter.take(records.take(chunk) if records else chunk)
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
    def __init__(self, look: Look) -> None:
        self.count = 0
        self.beginning = b""
        self.wrong: str | None = None
        self._look = look
        self._open = b""

    def take(self, content: bytes) -> None:
        for at in range(0, len(content), CHUNK):
            self._take(content[at : at + CHUNK])

    def _take(self, chunk: bytes) -> None:
        ends = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if ends:
            self._close(self._open + chunk[:ends])
            self._open = b""
        self._open += chunk[ends:]
        if len(self._open) > LONGEST_LINE:
            self._cut()

    def end(self) -> None:
        self._close(self._open)

    def _close(self, content: bytes) -> None:
        # The white space of all lines at once: to strip each by itself takes several times as long.
        bare = list(filter(None, content.translate(None, _WITHIN_LINES).splitlines()))
        if bare and self.wrong is None:
            lines = Lines(self.count, bare, content)
            self.beginning = self.beginning or lines.whole()[0][:CHUNK]
            self.wrong = self._look(lines)
        self.count += len(bare)

    def _cut(self) -> None:
        """Keep of a line that is too long as much as tells that it is not blank."""
        self._open = self._open.lstrip(_BLANK)
        if len(self._open) > LONGEST_LINE:
            self.beginning = self.beginning or self._open[:CHUNK]
            self.wrong = self.wrong or (
                f"has more than {LONGEST_LINE:,} bytes in row {self.count + 1}, blank lines not counted; "
                "deliver shorter rows"
            )
            self._open = b"x"
