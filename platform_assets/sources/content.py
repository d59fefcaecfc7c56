"""What is in a landed file: read without following a link, and known by its sha256.

Between a listing and the reading whoever may write to the landing area can put something else in a file's place: a link
out of it, or a file of the same size and time. So it is opened step by step, and has to be the file that was listed.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

State = tuple[int, int, int, int]
"""Size, inode, and when content and inode changed last, in nanoseconds; the last of these no tool can set back."""

_CHUNK = 1 << 20
_IS_A_LINK = frozenset({errno.ELOOP, errno.ENOTDIR})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ChangedError(Exception):
    """A file is another one than it was when it was looked at."""


class LinkError(Exception):
    """A link lies where a file, or the folder of its arrival date, was listed."""


def real(path: Path) -> Path:
    """Where a path leads; of links in a circle, which `Path.resolve` raises at, some path that cannot be opened."""
    return Path(os.path.realpath(path))


def state_of(stat: os.stat_result) -> State:
    """By what a file is told from another one, also from one of the same size and time that took its place."""
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def sha256_of(file: Path, path: str, state: State) -> str:
    """The sha256 of what is in a file.

    Raises:
        ChangedError: it is in another one, or came to be while it was read.
        LinkError: a link lies on the way to it.
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with opened(file, path, state) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
        _expect(stream, state)
    return digest.hexdigest()


@contextmanager
def opened(file: Path, path: str, state: State) -> Iterator[BinaryIO]:
    """What is in a file, to be read; arguments and errors as of `sha256_of`.

    Nothing is waited for: a pipe that lies in its place has another state.
    """
    with _opened(file, path) as stream:
        _expect(stream, state)
        yield stream


def expect_open(file: Path, state: State) -> None:
    """Raise what `opened` would of the file itself; the way to it is not looked at, which takes most of the time."""
    with open(_open_within(str(file), _FILE, None), "rb") as stream:
        _expect(stream, state)


def _expect(stream: BinaryIO, state: State) -> None:
    if state_of(os.fstat(stream.fileno())) != state:
        raise ChangedError


@contextmanager
def _opened(file: Path, path: str) -> Iterator[BinaryIO]:
    root, source = real(file.parents[path.count("/")]), real(file.parent.parent)
    if not source.is_relative_to(root):
        raise LinkError
    above = os.open(source, _FOLDER)
    try:
        folder = _open_within(file.parent.name, _FOLDER | os.O_NOFOLLOW, above)
    finally:
        os.close(above)
    try:
        descriptor = _open_within(file.name, _FILE, folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - it has no path of its own that could be trusted
        yield stream


def _open_within(name: str, how: int, folder: int | None) -> int:
    try:
        return os.open(name, how, dir_fd=folder)
    except OSError as error:
        if error.errno in _IS_A_LINK:
            raise LinkError from None
        raise
