"""Landed files as what is in them: gzip unpacked while it streams past, and refused where it is damaged or a bomb."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from platform_assets.contracts.landing import COMPRESSED
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import LimitError, Limits

_BEGINNING = b"\x1f\x8b"
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
    with file.open() as packed, gzip.GzipFile(fileobj=packed, mode="rb") as stream:
        while chunk := _unpacked(stream, size):
            unpacked += len(chunk)
            if reason := limits.unpacks_too_far(unpacked, file.size):
                raise LimitError(reason)
            yield chunk


def _unpacked(stream: gzip.GzipFile, size: int) -> bytes:
    try:
        return stream.read(size)
    except EOFError:
        raise CompressionError(_CUT_SHORT) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CompressionError(f"is damaged gzip: {error}") from None
