"""What lies in a landing area: files as they were listed, and what is wrong with those that are not taken."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import BinaryIO, NamedTuple

from platform_assets.contracts.landing import Format
from platform_assets.lakehouse.errors import LakeError
from platform_assets.sources.content import ChangedError, LinkError, State, opened

NOT_AS_LISTED = (OSError, ChangedError, LinkError, LakeError)
"""Errors of whoever opens a file that was listed."""
IS_A_LINK = "is a symbolic link; only files inside the landing root are taken"


@dataclass(frozen=True)
class StoredVersion:
    """An object of a bucket, as it was when it was listed.

    Args:
        root: URL of the landing area that the object lies in.
        e_tag: by which the store tells it from what may be written in its place.
    """

    root: str
    e_tag: str


@dataclass(frozen=True)
class LandedFile:
    """A file as it lay in the landing area when it was looked at.

    Args:
        path: below the landing root, with forward slashes.
        file: where it is; of an object of a bucket, until it is fetched, nothing but its path.
        arrival_date: the date of its folder.
        format: parquet, csv or json.
        size: bytes.
        modified_ns: last change, nanoseconds since 1970.
        state: by which it is told from another one, also from one of the same size and time that took its place.
        sha256: of its content, once `hashed` has read it; empty in a listing.
        stored: the object, of a file that lies in a bucket and was not fetched yet.
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
        """What is in it, to be read, as long as it is the file that was listed.

        Raises:
            ChangedError: it is in another state, or another file.
            LinkError: a link lies on the way to it.
            OSError: it cannot be opened.
        """
        return opened(self.file, self.path, self.state)


class Known(NamedTuple):
    """What was recorded of a file that was looked at before."""

    size: int
    modified_ns: int
    sha256: str
    refused: bool


@dataclass(frozen=True)
class Problem:
    """Something in the landing area that is not taken; it is looked at again next time.

    Args:
        path: below the landing root, or that root itself.
        what: why.
        todo: what a person can do, where that is not plain.
        is_growing: whether it is only to be waited for.
        rests_in_s: seconds from now until it can be taken if nobody writes to it any more, where that is all it takes.
        is_replaced: whether it was taken before, with other content.
    """

    path: str
    what: str
    todo: str = ""
    is_growing: bool = False
    rests_in_s: float | None = None
    is_replaced: bool = False

    @property
    def message(self) -> str:
        """All of it, after the path."""
        return f"{self.what}; {self.todo}" if self.todo else self.what


@dataclass(frozen=True)
class Listing:
    """What there is to take."""

    pending: tuple[LandedFile, ...]
    growing: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    delivered: frozenset[date]
    """Arrival dates with files, of which none is growing, refused or in the way: nothing more of them is to come."""


def not_as_listed(path: str, error: Exception) -> Problem:
    """What one of `NOT_AS_LISTED` says of a file, and nothing about what is in it."""
    if isinstance(error, ChangedError):
        return Problem(path, "is still growing, changed while it was read", is_growing=True)
    if isinstance(error, LinkError):
        return Problem(path, IS_A_LINK)
    if isinstance(error, LakeError):
        return Problem(path, f"cannot be read: {error.what.rstrip('.')}", error.todo)
    return Problem(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")
