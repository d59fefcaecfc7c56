"""A copy of a text file as Spark can split it among tasks: unpacked, and each record on a line of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

from platform_assets.records.line_copies import MARK
from platform_assets.sources.compressed import chunks
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.records import on_lines

_CHUNK = 1 << 20
_BLANK = bytes(range(33))
_LINE_END = f"{MARK}n".encode()


def lines_of(file: LandedFile, limits: Limits = Limits()) -> Iterator[bytes]:
    """The content of the copy, piece by piece.

    Args:
        file: CSV, or JSON lines, which have no record on several lines.
        limits: of what is in it.

    Raises:
        CompressionError: it cannot be unpacked.
        LimitError: too much is in it.
        ChangedError, LinkError, OSError: it cannot be read, or is not what was listed.
    """
    content = chunks(file, limits, _CHUNK)
    return on_lines(content) if file.format == "csv" else content


def line_numbers(file: LandedFile, rows: Collection[int], limits: Limits = Limits()) -> Iterator[tuple[int, int]]:
    """Yield in which line of a text file some of its rows begin, both counted from 1.

    Args:
        file: CSV, with its header, or JSON lines.
        rows: numbers of rows.
        limits: of what is in it.
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
