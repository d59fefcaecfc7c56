"""Files of a landing area, listed, fetched and hashed, and problems of others.

Between listing and reading, a writer of the landing area can replace a file: by a link out of it, or a file of the same
size and time. So it is opened step by step, and must be the listed file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

from platform_assets.contracts.landing import Format
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import stored

State = tuple[int, int, int, int]
"""Size, inode, and when content and inode changed last, in nanoseconds; the last of these no tool can set back."""

_CHUNK = 1 << 20
_IS_A_LINK = frozenset({errno.ELOOP, errno.ENOTDIR})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

IS_A_LINK = "is a symbolic link; only files inside the landing root are taken"


class ChangedError(Exception):
    """A file is no longer the one that was listed."""


class LinkError(Exception):
    """There is a link in place of a listed file, or of the folder of its arrival date."""


def real(path: Path) -> Path:
    """Return the target of a path; for circular links some path that cannot be opened, instead of an error."""
    return Path(os.path.realpath(path))


def state_of(stat: os.stat_result) -> State:
    """Return the identity of a file, which differs also for a replacement of the same size and time."""
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def sha256_of(file: Path, path: str, state: State) -> str:
    """Return the sha256 of a file's content."""
    digest = hashlib.sha256()
    with opened(file, path, state) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
        _expect(stream, state)
    return digest.hexdigest()


@contextmanager
def opened(file: Path, path: str, state: State) -> Iterator[BinaryIO]:
    """Open a file for reading; arguments and errors as of `sha256_of`.

    It never waits: a pipe in its place has another identity.
    """
    with _opened(file, path) as stream:
        _expect(stream, state)
        yield stream


def expect_open(file: Path, state: State) -> None:
    """Raise the same errors as `opened` for the file itself; its path is not checked, which takes most of the time."""
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


NOT_AS_LISTED = (OSError, ChangedError, LinkError, LakeError)
"""Errors of opening a listed file."""


@dataclass(frozen=True)
class StoredVersion:
    """A listed object of a bucket."""

    root: str
    e_tag: str


@dataclass(frozen=True)
class LandedFile:
    """A listed file of the landing area.

    Args:
        path: below the landing root, with forward slashes.
        file: its place; for an object of a bucket, until it is fetched, only its path.
        modified_ns: last change, nanoseconds since 1970.
        state: its identity, which differs also for a replacement of the same size and time.
        sha256: hash of its content, after `hashed`; empty in a listing.
        stored: the object, for a file in a bucket that was not fetched yet.
    """

    path: str
    file: Path
    arrival_date: date
    format: Format
    size: int
    modified_ns: int
    state: State
    sha256: str = ""
    stored: StoredVersion | None = None

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open it for reading, if it is still the listed file."""
        return opened(self.file, self.path, self.state)


class Known(NamedTuple):
    """The record of a file that was seen before."""

    size: int
    modified_ns: int
    sha256: str
    refused: bool


@dataclass(frozen=True)
class Problem:
    """Something in the landing area that cannot be ingested; it is checked again next time.

    Args:
        path: below the landing root, or that root itself.
        todo: remedy, if it is not plain.
        is_growing: whether it only needs time.
        rests_in_s: seconds until it can be ingested if it does not change again, if that is enough.
        is_replaced: whether it was ingested before, with other content.
    """

    path: str
    what: str
    todo: str = ""
    is_growing: bool = False
    rests_in_s: float | None = None
    is_replaced: bool = False

    @property
    def message(self) -> str:
        """Return the full message after the path."""
        return f"{self.what}; {self.todo}" if self.todo else self.what


@dataclass(frozen=True)
class Listing:
    """Files to ingest."""

    pending: tuple[LandedFile, ...]
    growing: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    delivered: frozenset[date]
    """Arrival dates with files, none of them growing, refused or blocked: nothing more is to come for them."""


def not_as_listed(path: str, error: Exception) -> Problem:
    """Return the problem for one of `NOT_AS_LISTED`, which does not concern the file's content."""
    if isinstance(error, ChangedError):
        return Problem(path, "is still growing, changed while it was read", is_growing=True)
    if isinstance(error, LinkError):
        return Problem(path, IS_A_LINK)
    if isinstance(error, LakeError):
        return Problem(path, f"cannot be read: {error.what.rstrip('.')}", error.todo)
    return Problem(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""What says nothing of a file, but of where it is to be fetched to."""


@contextmanager
def at_hand(files: Iterable[LandedFile], folder: Path) -> Iterator[tuple[list[LandedFile], list[Problem]]]:
    """Yield hashed files with their content on this machine: objects of a bucket are fetched."""
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed process
    here: list[LandedFile] = []
    problems: list[Problem] = []
    try:
        for file in files:
            try:
                here.append(file if file.stored is None else _fetched(file, folder))
            except NOT_AS_LISTED as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                problems.append(not_as_listed(file.path, error))
        with_sha256, others = hashed(here)
        yield with_sha256, [*problems, *others]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_T = TypeVar("_T")


def _looked_at(
    files: Iterable[LandedFile], look: Callable[[LandedFile], _T]
) -> tuple[dict[LandedFile, _T], dict[LandedFile, Problem]]:
    """Return the result for each file, and the problems of files that changed since the listing."""
    found: dict[LandedFile, _T] = {}
    problems: dict[LandedFile, Problem] = {}
    for landed in files:
        try:
            found[landed] = look(landed)
        except NOT_AS_LISTED as error:
            problems[landed] = not_as_listed(landed.path, error)
    return found, problems


def hashed(files: Iterable[LandedFile]) -> tuple[list[LandedFile], list[Problem]]:
    """Return files with the sha256 of their content, and problems of those that changed since the listing."""
    found, problems = _looked_at(files, content_sha256)
    return [replace(landed, sha256=sha256) for landed, sha256 in found.items()], [*problems.values()]


def changed_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Return hashed files whose content changed, each with its problem."""
    found, changed = _looked_at(files, content_sha256)
    others = (landed for landed, sha256 in found.items() if sha256 != landed.sha256)
    return changed | {landed: not_as_listed(landed.path, ChangedError()) for landed in others}


def replaced_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Return listed files that were replaced, by their identity, without reading them.

    That is enough for a file refused by inspection: none of its rows is recorded.
    """

    def opened_again(landed: LandedFile) -> None:
        with landed.open():
            pass

    return _looked_at(files, opened_again)[1]


def content_sha256(landed: LandedFile) -> str:
    """Return the sha256 of a listed file's content; an object of a bucket is read through the network."""
    if landed.stored is None:
        return sha256_of(landed.file, landed.path, landed.state)
    digest = hashlib.sha256()
    for piece in _pieces(landed):
        digest.update(piece)
    return digest.hexdigest()


def _fetched(landed: LandedFile, folder: Path) -> LandedFile:
    file = folder / landed.path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("xb") as copy:
        for piece in _pieces(landed):
            copy.write(piece)
    return replace(landed, file=file, state=state_of(file.stat()), stored=None)


def _pieces(landed: LandedFile) -> Iterator[bytes]:
    from platform_assets.lakehouse.storage.object_store import OtherObjectError  # which a landing folder does without

    assert landed.stored is not None
    root = stored(landed.stored.root)
    try:
        yield from root.pieces(landed.path, landed.stored.e_tag)
    except OtherObjectError:
        raise ChangedError from None


_MOST = 1 << 16
"""Most files whose version is remembered."""
RESTS_NS = 2_000_000_000
"""Within this time after its last change a file may change again without a new time stamp."""

_Known = dict[str, tuple[State, str]]


class Hashes:
    """Hashes of versions of files."""

    def __init__(self, file: Path | None = None) -> None:
        self._file: Final = file
        self._known: _Known | None = None
        self._is_new = False

    @staticmethod
    @cache
    def in_state(state: Path) -> Hashes:
        """Return an installation's hashes, which a process reads once."""
        return Hashes(state / "hashed.json")

    def of(self, file: Path, state: State) -> str | None:
        """Return the sha256 of a version of a file; None if it was not read yet."""
        if self._known is None:
            self._known = self._kept()
        known, sha256 = self._known.get(str(file), (None, None))
        return sha256 if known == state else None

    def learn(self, file: Path, state: State, sha256: str) -> str:
        """Remember a hash just read, if the version can be distinguished from the next one. Returns the hash."""
        if self._known is not None and time.time_ns() - state[-1] >= RESTS_NS:
            self._known[str(file)] = state, sha256
            self._is_new = True
        return sha256

    def keep(self) -> None:
        """Save new hashes for other processes; of two at once, one may have to read again."""
        if not self._is_new or self._known is None or self._file is None:
            return
        self._is_new = False
        known = dict([*(self._kept() | self._known).items()][-_MOST:])
        with suppress(OSError):
            unfinished = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            unfinished.write_text(json.dumps(known), encoding="utf-8")
            unfinished.replace(self._file)

    def _kept(self) -> _Known:
        if self._file is None:
            return {}
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {
                str(path): ((int(size), int(inode), int(modified), int(changed)), str(sha256))
                for path, ((size, inode, modified, changed), sha256) in json.loads(self._file.read_bytes()).items()
            }
        return {}
