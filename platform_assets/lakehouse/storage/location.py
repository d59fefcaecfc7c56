"""Where files of a lake lie: one small interface, which a local disk keeps here and an object store can keep.

What an object store cannot do has no method: no renames, no locks, no links; a folder is there as soon as something
lies in it. What it can do is asked for by purpose: a file is written whole or not at all, and *written if there is
none* has exactly one winner. A caller that needs more, for example a lock, names the disk (`lakehouse.locks`).
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
    """A file as it lies in a folder.

    Args:
        size: bytes.
        written: when it was last written, UTC, with the store's precision of a second or a millisecond.
        e_tag: the store's identity of this content under this name; empty on a disk.
    """

    size: int
    written: datetime
    e_tag: str = ""


@dataclass(frozen=True, order=True)
class Location(ABC):
    """A file or a folder, whether it is there or not.

    Args:
        address: absolute, as deltalake and people take it; Spark takes it by `places.for_hadoop`.
    """

    address: str

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, path: str) -> Self:
        """Return what lies below a folder.

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
        """The last part of the address."""
        return self.address.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        """The folder it lies in; of the topmost one itself."""
        return type(self)(self.address.rpartition("/")[0] or "/")

    def below(self, folder: Location) -> str | None:
        """Return the path from a folder to here; None if this lies elsewhere."""
        path = self.address.removeprefix(f"{folder.address.rstrip('/')}/")
        return None if path == self.address else path

    def holds(self, other: Location) -> bool:
        """Return whether another location is this one or lies below it, also by another name."""
        return other == self or other.below(self) is not None

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is a file, or a folder."""

    @abstractmethod
    def size(self) -> int | None:
        """Return how many bytes a file has; None if there is no such file."""

    @abstractmethod
    def written(self) -> datetime:
        """Return when a file was last written, or something put into a folder, UTC.

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
        """Return what lies directly in a folder, sorted; nothing if there is no such folder."""

    @abstractmethod
    def folders(self) -> list[Self]:
        """Return the folders directly in a folder, sorted, without links; none if there is no such folder."""

    @abstractmethod
    def files(self) -> dict[str, Entry]:
        """Return every file below a folder, by its relative path. Skips files deleted during the listing."""

    @abstractmethod
    def now(self) -> datetime:
        """Return what time it is to what keeps this folder, which also says when its files were written, UTC.

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
        """Write a file piece by piece so that it is either not there or whole; `sync` it before relying on it."""

    @abstractmethod
    def copy_to(self, target: Location) -> None:
        """Copy a file, to where another kind of storage may be; the target is written as `receive` does it.

        Raises:
            FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def remove(self, *, durable: bool = True) -> None:
        """Remove a file, or a folder with all that is in it; nothing is done where there is neither.

        Args:
            durable: wait until a power cut cannot undo it; not needed where it does no harm if the file comes back.
        """

    @abstractmethod
    def make(self) -> None:
        """Make a folder and those above it, for libraries that want to find one."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove a folder and those below it, as far as nothing but folders is in them."""

    @abstractmethod
    def sync(self) -> None:
        """Wait until a power cut cannot undo what was written to a file, or which files lie in a folder."""

    @abstractmethod
    def arrow(self) -> tuple[FileSystem, str]:
        """Return what Arrow reads it through, and what it is called there."""


def about_to_appear() -> None:
    """Mark the point at which a writer can die before its file is visible."""
    failpoint("write.before_rename")


def sync(locations: Iterable[Location]) -> None:
    """Force files and folders to disk: a commit must not be there before what it refers to."""

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
