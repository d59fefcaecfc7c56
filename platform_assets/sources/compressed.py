"""Landed files as what is in them: gzip unpacked while it streams past, and refused where it is damaged or a bomb."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

from platform_assets.contracts.landing import COMPRESSED
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import LimitError, Limits

_BEGINNING = b"\x1f\x8b"
_GZIP = 31
"""For zlib: with the header and the end that gzip has, and a window as large as any."""
_AT_ONCE = 1 << 14
_MOST_MEMBERS = 200_000
_CUT_SHORT = "is gzip that was cut short; deliver it whole"


class CompressionError(Exception):
    """What is in a file cannot be got out; the text says why."""


def is_compressed(file: Path) -> bool:
    """Whether a file says that it is gzip."""
    return file.suffix.lower() == COMPRESSED


def holds_gzip(file: LandedFile) -> bool:
    """Whether a file begins as gzip does, whatever its name."""
    with file.open() as stream:
        return stream.read(len(_BEGINNING)) == _BEGINNING


def chunks(file: LandedFile, limits: Limits, size: int) -> Iterator[bytes]:
    """What is in a file, unpacked, piece by piece.

    Args:
        file: to read.
        limits: how much may be in it.
        size: bytes of a piece.

    Raises:
        CompressionError: it is damaged or cut short, or not gzip though its name says so.
        LimitError: too much is in it.
        ChangedError, LinkError, OSError: it cannot be read, or is not what was listed.
    """
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
    """What is in all members of a gzip file; nothing may lie between or behind them, where Java takes nothing either.

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
