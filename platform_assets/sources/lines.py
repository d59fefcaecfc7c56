"""A copy of a text file as Spark can split it among tasks: unpacked, and each record on a line of its own."""

from __future__ import annotations

from collections.abc import Iterator

from platform_assets.sources.compressed import chunks
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.records import on_lines

_CHUNK = 1 << 20


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
