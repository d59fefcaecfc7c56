"""Unpack delivered text files piece by piece: gzip, zstandard, bzip2, and a zip archive of one file."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from platform_assets.contracts.landing import COMPRESSIONS
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import LimitError, Limits

CHUNK = 1 << 18
"""Bytes read at a time; short lines take some twenty times as much."""

_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    ".gz": (b"\x1f\x8b",),
    ".zst": (b"\x28\xb5\x2f\xfd", *(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))),
    ".bz2": (b"BZh",),
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
"""First bytes, of zstandard also those of a frame that a reader skips."""
_MOST_DIRECTORY = 1 << 24
"""Bytes that Python's zip reader may ask for at once: it reads the list of an archive's files as a whole."""
_OF_MACS = "__MACOSX/"


class ContentError(Exception):
    """The content of a file cannot be unpacked; the text says why."""


def compression_of(file: Path) -> str:
    """Return a file's ending that says how it is compressed; empty if there is none."""
    ending = file.suffix.lower()
    return ending if ending in COMPRESSIONS else ""


def spark_unpacks(file: Path) -> bool:
    """Return whether Spark reads a file directly, or recognizes its compression by its name."""
    return not compression_of(file) or file.suffix == ".gz"


def compression_in(file: LandedFile) -> str:
    """Return the ending that a file's first bytes suggest; empty if they suggest none."""
    with file.open() as stream:
        content = stream.read(4)
    return next((ending for ending, beginnings in _BEGINNINGS.items() if content.startswith(beginnings)), "")


def unpacked(file: LandedFile, limits: Limits) -> Iterator[bytes]:
    """Yield the unpacked content of a file, piece by piece."""
    ending = compression_of(file.file)
    if not ending:
        with file.open() as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
        return
    if not file.size:
        raise ContentError(_cut_short(ending))
    if compression_in(file) != ending:
        raise ContentError(f"is not {COMPRESSIONS[ending]}, though its name ends with {ending}")
    size = 0
    with file.open() as packed:
        for chunk in _UNPACK[ending](packed):
            size += len(chunk)
            if reason := limits.unpacks_too_far(size, file.size):
                raise LimitError(reason)
            yield chunk


def _cut_short(ending: str) -> str:
    return f"is {COMPRESSIONS[ending]} that was cut short; deliver it whole"


def _by_arrow(ending: str, codec: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    """Return a reader by Arrow, which notices a truncated file: `zstandard` takes half a file for the whole."""

    def pieces(packed: BinaryIO) -> Iterator[bytes]:
        import pyarrow as pa  # the help of commands does without

        stream = pa.CompressedInputStream(packed, codec)
        while True:
            try:
                chunk = stream.read(CHUNK)
            except (pa.ArrowException, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                if "Truncated" in str(error):
                    raise ContentError(_cut_short(ending)) from None
                raise ContentError(f"is damaged {COMPRESSIONS[ending]}: {str(error).splitlines()[0]}") from None
            if not chunk:
                return
            yield chunk

    return pieces


def _of_archive(packed: BinaryIO) -> Iterator[bytes]:
    """Yield the content of the one file in a zip archive; folders, and Mac metadata, do not count."""
    try:
        with zipfile.ZipFile(_Sparing(packed)) as archive:
            files = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(_OF_MACS)]
            if len(files) != 1:
                names = ", ".join(PurePosixPath(one.filename).name[:60] for one in files[:3])
                shown = f" ({names}{', …' if len(files) > 3 else ''})" if files else ""
                raise ContentError(f"is a zip archive of {len(files):,} files{shown}; deliver each by itself")
            if files[0].flag_bits & 1:
                raise ContentError("is an encrypted zip archive; deliver it without a password")
            with archive.open(files[0]) as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        zlib.error,
        LZMAError,
        EOFError,
        ValueError,
        struct.error,
        OverflowError,
    ) as error:
        if "not a zip file" in str(error) or isinstance(error, EOFError):
            raise ContentError(_cut_short(".zip")) from None
        raise ContentError(f"is a damaged zip archive: {str(error).splitlines()[0]}") from None


class _Sparing:
    """Read a file for Python's zip reader, in no larger pieces than a list of few files needs."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.tell, self.seekable, self.close = stream.tell, stream.seekable, stream.close

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_DIRECTORY:
            raise ContentError("is a zip archive of many files; deliver each by itself")
        return self._stream.read(_MOST_DIRECTORY if size < 0 else size)

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset < 0 and whence == 0:
            raise ValueError("it names a place before its beginning")
        return self._stream.seek(offset, whence)


_UNPACK: Mapping[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": _by_arrow(".gz", "gzip"),
    ".zst": _by_arrow(".zst", "zstd"),
    ".bz2": _by_arrow(".bz2", "bz2"),
    ".zip": _of_archive,
}
