"""Files on a disk of this machine, or on a mounted one.

They are forced to disk in the order in which they refer to each other: a file before the folder that names it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.storage.location import Entry, Location, about_to_appear

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_PIECE_BYTES = 8 * 1024 * 1024
_REMOVALS = 20
"""How often a folder is removed in which others still write or remove."""
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def path_of(place: str) -> str:
    """Return the absolute path for a path or a `file:` URL.

    Raises:
        LakeError: it is a URL of another kind.
    """
    if _URL.match(place):
        url = urlsplit(place)
        if url.scheme != "file" or url.netloc not in ("", "localhost"):
            raise LakeError(
                f"A lake cannot be in {place}: only on a disk of this machine, or one that is mounted here.",
                "Name a folder in PLATFORM_LAKE.",
            )
        place = unquote(url.path)
    return str(Path(place).absolute())


@dataclass(frozen=True, order=True)
class Disk(Location):
    """A file or a folder of the local file system."""

    def __fspath__(self) -> str:
        return self.address

    def holds(self, other: Location) -> bool:
        return Path(other.address).resolve().is_relative_to(Path(self).resolve())

    def exists(self) -> bool:
        return Path(self).exists()

    def size(self) -> int | None:
        try:
            # A Path takes several times as long to make as the system to ask, and thousands are asked.
            seen = os.stat(self.address)  # noqa: PTH116
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise
        return seen.st_size if stat.S_ISREG(seen.st_mode) else None

    def written(self) -> datetime:
        return datetime.fromtimestamp(Path(self).stat().st_mtime, UTC)

    def read(self, last: int | None = None) -> bytes | None:
        try:
            with Path(self).open("rb") as file:
                if last is not None:
                    file.seek(-min(last, file.seek(0, os.SEEK_END)), os.SEEK_END)
                return file.read()
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        try:
            return sorted(path.name for path in Path(self).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def folders(self) -> list[Self]:
        below = (self / name for name in self.names())
        return [each for each in below if Path(each).is_dir() and not Path(each).is_symlink()]

    def files(self) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for path, _, names in os.walk(self):
            for name in names:
                file = Path(path, name)
                with suppress(FileNotFoundError):
                    seen = file.stat(follow_symlinks=False)
                    written = datetime.fromtimestamp(seen.st_mtime, UTC)
                    entries[file.relative_to(self).as_posix()] = Entry(seen.st_size, written)
        return entries

    def now(self) -> datetime:
        probe = self / f".{token_hex(8)}.now"
        try:
            Path(probe).touch(exist_ok=False)
            return probe.written()
        finally:
            Path(probe).unlink(missing_ok=True)

    def write_new(self, content: bytes) -> bool:
        with self._drafted(content) as draft:
            try:
                Path(self).hardlink_to(draft)
            except FileExistsError:
                return False
        self.parent.sync()
        return True

    def replace(self, content: bytes) -> None:
        with self._drafted(content) as draft:
            draft.replace(self)
        self.parent.sync()

    def ensure_writable(self) -> None:
        Path(self).open("ab").close()

    def write_in_place(self, pieces: Iterable[bytes]) -> None:
        self.parent.make()
        with Path(self).open("wb") as stream:
            for piece in pieces:
                stream.write(piece)

    def replace_if_held(self, content: bytes, still_held: Callable[[], None], draft: Self) -> bool:
        # A lock can end without its holder's knowledge. The next holder removes all drafts: after the rename, when it
        # finds the file, or before, when there is nothing left to rename.
        draft.replace(content)
        try:
            still_held()
            Path(draft).replace(self)
        except FileNotFoundError:
            return False
        finally:
            draft.remove(durable=False)
        self.parent.sync()
        return True

    def receive(self, pieces: Iterable[bytes]) -> None:
        with self._replaced() as draft, draft.open("wb") as stream:
            for piece in pieces:
                stream.write(piece)

    def copy_to(self, target: Location) -> None:
        if isinstance(target, Disk):
            with target._replaced() as draft:
                shutil.copy2(self, draft)
            return
        with Path(self).open("rb") as stream:
            target.receive(iter(partial(stream.read, _PIECE_BYTES), b""))

    def remove(self, *, durable: bool = True) -> None:
        for turn in range(1, _REMOVALS + 1):
            try:
                if Path(self).is_dir() and not Path(self).is_symlink():
                    shutil.rmtree(self)
                else:
                    Path(self).unlink(missing_ok=True)
                break
            except OSError as error:  # others, the last tasks of a job that failed for one, write or remove there too
                if turn == _REMOVALS or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                    raise
        if durable:
            self.parent.sync()

    def make(self) -> None:
        if Path(self).is_dir():
            return
        self.parent.make()
        Path(self).mkdir(exist_ok=True)
        self.parent.sync()

    def tidy(self) -> None:
        for path, _, _ in os.walk(self, topdown=False):
            try:
                Path(path).rmdir()
            except OSError:
                if Path(path).is_dir() and not any(Path(path).iterdir()):
                    raise

    def sync(self) -> None:
        handle = os.open(self, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def arrow(self) -> tuple[FileSystem, str]:
        from pyarrow.fs import LocalFileSystem  # which most commands do without

        return LocalFileSystem(), self.address

    @contextmanager
    def _replaced(self) -> Iterator[Path]:
        """Open a temporary file, which replaces this one if nothing goes wrong."""
        self.parent.make()
        draft = _beside(self)
        try:
            yield draft
            draft.replace(self)
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def _drafted(self, content: bytes) -> Iterator[Path]:
        """Write the content under a temporary name, which is removed afterwards."""
        self.parent.make()
        draft = _beside(self)
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            about_to_appear()
            yield draft
        finally:
            draft.unlink(missing_ok=True)


def _beside(file: Location) -> Path:
    return Path(f"{file.parent}/.{file.name}.{token_hex(4)}.tmp")
