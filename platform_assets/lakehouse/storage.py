"""Every file operation of the lakehouse that is not Delta's own.

Local file system for now; object storage would be a second implementation of these few functions.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from platform_assets.failpoints import failpoint

_OS_ERROR = re.compile(r"\(os error (\d+)\)")

_SYNC_THREADS = 8


def exists(path: Path) -> bool:
    """Whether there is a file or folder."""
    return path.exists()


def size(path: Path) -> int | None:
    """Bytes of a file; None if there is no such file."""
    try:
        return path.stat().st_size if path.is_file() else None
    except FileNotFoundError:
        return None


def names(folder: Path) -> list[str]:
    """Names in a folder, sorted; none if there is no such folder."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


@dataclass(frozen=True)
class Found:
    """A file as it lies in a folder.

    Args:
        size: bytes.
        written: when it was last written, UTC.
    """

    size: int
    written: datetime


def folders(folder: Path) -> list[Path]:
    """Folders in a folder, sorted, without links; none if there is no such folder."""
    return [path for name in names(folder) if (path := folder / name).is_dir() and not path.is_symlink()]


def modified(path: Path) -> datetime:
    """When a file was last written, or something put into a folder, UTC."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def clock_of(folder: Path) -> datetime:
    """What time it is to the file system, which also says when its files were written: that of a file made now, UTC."""
    probe = folder / f".{token_hex(8)}.now"
    try:
        probe.touch(exist_ok=False)
        return modified(probe)
    finally:
        probe.unlink(missing_ok=True)


def files_below(folder: Path) -> dict[str, Found]:
    """Every file in a folder and those below it, by its path from there; without those that go meanwhile."""
    found: dict[str, Found] = {}
    for path, _, names_in_it in os.walk(folder):
        for name in names_in_it:
            file = Path(path, name)
            try:
                seen = file.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            written = datetime.fromtimestamp(seen.st_mtime, UTC)
            found[file.relative_to(folder).as_posix()] = Found(seen.st_size, written)
    return found


def read(path: Path) -> bytes | None:
    """Content of a file; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def tail(path: Path, count: int) -> bytes:
    """The last bytes of a file; none if there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(-min(count, file.tell()), os.SEEK_END)
            return file.read()
    except FileNotFoundError:
        return b""


def write(path: Path, content: bytes) -> None:
    """Write a file so that it is either not there or whole, also after a power cut."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        failpoint("write.before_rename")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync([path.parent])


def rename(file: Path, new: Path) -> None:
    """Give a file in the same folder another name, also after a power cut.

    Raises:
        FileNotFoundError: somebody else has removed it.
    """
    file.rename(new)
    sync([new.parent])


def copy(source: Path, target: Path) -> None:
    """Copy a file so that the target is either not there or whole; `sync` it and its folder before relying on it."""
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.{token_hex(4)}.tmp")
    try:
        shutil.copy2(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each of them synced into the folder that holds it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync([folder.parent])


def sync(paths: Iterable[Path]) -> None:
    """Force files and folders to disk: a commit must not be there before what it refers to.

    Raises:
        FileNotFoundError: one of them does not exist.
    """
    paths = list(paths)
    if len(paths) < _SYNC_THREADS:
        for path in paths:
            _sync(path)
        return
    with ThreadPoolExecutor(_SYNC_THREADS) as threads:
        list(threads.map(_sync, paths))


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, and sync the folder it was in."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    sync([path.parent])


def unlink(file: Path) -> None:
    """Remove a file that nobody refers to, without waiting for the disk: should it come back, it does no harm."""
    file.unlink(missing_ok=True)


def remove_empty(folder: Path) -> None:
    """Remove a folder if nothing is in it."""
    try:
        folder.rmdir()
    except OSError:
        if not names(folder):
            raise


def remove_empty_tree(folder: Path) -> None:
    """Remove a folder and those below it, as far as nothing but folders is in them."""
    for path, _, _ in os.walk(folder, topdown=False):
        remove_empty(Path(path))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def errors_numbered(table_path: Path) -> Iterator[None]:
    """Errors of the operating system, a full disk for example, with their number; deltalake only puts them in words."""
    try:
        yield
    except OSError as error:
        found = _OS_ERROR.search(str(error))
        if error.errno is not None or found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(table_path)) from error
