"""Where files of a lake are: one small interface, which a local disk and an object store can implement.

Operations that an object store lacks have no method: no renames, no locks, no links; a folder exists as soon as it has
a file. Methods are named by purpose: a file is written whole or not at all, and *written if there is none* has exactly
one winner. A caller that needs more, for example a lock, uses the disk (`lakehouse.locks`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import LakeError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_SYNC_THREADS = 8


@dataclass(frozen=True)
class Entry:
    """A file in a folder.

    Args:
        size: bytes.
        written: time of the last write, UTC, with the store's precision of a second or a millisecond.
        e_tag: the store's identity of this content under this name; empty on a disk.
    """

    size: int
    written: datetime
    e_tag: str = ""


@dataclass(frozen=True, order=True)
class Location(ABC):
    """A file or a folder, existing or not.

    Args:
        address: absolute, for deltalake and people; Spark uses `places.for_hadoop`.
    """

    address: str

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, path: str) -> Self:
        """Return a path below a folder.

        Raises:
            LakeError: the path leads elsewhere.
        """
        if path.startswith("/") or ".." in path.split("/"):
            raise LakeError(
                f"{path!r} does not lie below {self.address}.",
                "A log or a manifest of the lake was changed by another tool: restore it from a backup.",
            )
        return type(self)(f"{self.address.rstrip('/')}/{path}")

    @property
    def name(self) -> str:
        """Return the last part of the address."""
        return self.address.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        """Return its folder; for the topmost one itself."""
        return type(self)(self.address.rpartition("/")[0] or "/")

    def below(self, folder: Location) -> str | None:
        """Return the path from a folder to here; None if this is elsewhere."""
        path = self.address.removeprefix(f"{folder.address.rstrip('/')}/")
        return None if path == self.address else path

    def holds(self, other: Location) -> bool:
        """Return whether another location is this one or below it, also under another name."""
        return other == self or other.below(self) is not None

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is a file, or a folder."""

    @abstractmethod
    def size(self) -> int | None:
        """Return the bytes of a file; None if there is no such file."""

    @abstractmethod
    def written(self) -> datetime:
        """Return when a file was last written, or a folder changed, UTC.

        Raises:
            FileNotFoundError: there is neither.
        """

    @abstractmethod
    def read(self, last: int | None = None) -> bytes | None:
        """Return the content of a file; None if there is no such file.

        Args:
            last: only so many bytes at its end.
        """

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names directly in a folder, sorted; none if there is no such folder."""

    @abstractmethod
    def folders(self) -> list[Self]:
        """Return the folders directly in a folder, sorted, without links; none if there is no such folder."""

    @abstractmethod
    def files(self) -> dict[str, Entry]:
        """Return every file below a folder, by its relative path. Skips files deleted during the listing."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time by the clock of this folder's storage, which also dates its files, UTC.

        Raises:
            OSError: nothing can be written there.
        """

    @abstractmethod
    def write_new(self, content: bytes) -> bool:
        """Write a file if there is none, durably and all or nothing. Of several writers, one wins.

        Returns:
            Whether it was written. If not, it is as it was.
        """

    @abstractmethod
    def replace(self, content: bytes) -> None:
        """Write or replace a file, durably and all or nothing: readers see the old or the new content."""

    @abstractmethod
    def ensure_writable(self) -> None:
        """Check that a file can be written. Creates it empty if there is none.

        Raises:
            OSError: it cannot.
        """

    @abstractmethod
    def write_in_place(self, pieces: Iterable[bytes]) -> None:
        """Write a file without extra space on disk. A concurrent reader, or one after a power cut, may see a part.

        Only for files that are worthless by then.
        """

    @abstractmethod
    def replace_if_held(self, content: bytes, still_held: Callable[[], None], draft: Self) -> bool:
        """Replace a file if a lock is still held at that moment, however long this process was suspended before.

        Args:
            draft: temporary place of the content; the next holder of the lock removes it.

        Returns:
            Whether it was replaced; False if another process has taken the lock.
        """

    @abstractmethod
    def receive(self, pieces: Iterable[bytes]) -> None:
        """Write a file piece by piece so that it either does not exist or is whole; `sync` it before relying on it."""

    @abstractmethod
    def copy_to(self, target: Location) -> None:
        """Copy a file, possibly to another kind of storage; the target is written as by `receive`.

        Raises:
            FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def remove(self, *, durable: bool = True) -> None:
        """Remove a file, or a folder with all its content; do nothing if there is neither.

        Args:
            durable: wait until a power cut cannot undo it; not needed if a returning file does no harm.
        """

    @abstractmethod
    def make(self) -> None:
        """Make a folder and its parents, for libraries that expect one."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove a folder and its subfolders, as far as they contain no files."""

    @abstractmethod
    def sync(self) -> None:
        """Wait until a power cut cannot undo a file's content, or a folder's list of files."""

    @abstractmethod
    def arrow(self) -> tuple[FileSystem, str]:
        """Return the file system through which Arrow reads it, and its name there."""


def about_to_appear() -> None:
    """Mark the point at which a writer can die before its file is visible."""
    failpoint("write.before_rename")


def sync(locations: Iterable[Location]) -> None:
    """Force files and folders to disk: a commit must not exist before the files to which it refers."""

    def sync_each(locations: list[Location]) -> None:
        for location in locations:
            location.sync()

    every = list(locations)
    if len(every) < _SYNC_THREADS:
        sync_each(every)
        return
    # A share for each thread: to hand out thousands of files one by one takes longer than to force them to disk.
    with ThreadPoolExecutor(_SYNC_THREADS) as threads:
        list(threads.map(sync_each, (every[start::_SYNC_THREADS] for start in range(_SYNC_THREADS))))
