"""A copy of a text file as Spark can split it among tasks: unpacked, and each record on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator

from platform_assets.sources.compressed import GZIP_RATIO, chunks
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.records import on_lines

_CHUNK = 1 << 20


def lines_of(file: LandedFile, gzip_ratio: int = GZIP_RATIO) -> Iterator[bytes]:
    """The content of the copy, piece by piece.

    Args:
        file: CSV, or JSON lines, which have no record on several lines.
        gzip_ratio: how many times as long as a compressed file its content may be.

    Raises:
        CompressionError: it cannot be unpacked.
        OSError: it cannot be read.
    """
    content = chunks(file.file, gzip_ratio, _CHUNK)
    return on_lines(content) if file.format == "csv" else content
