"""A landing area in a folder of this machine, into which others write, links and odd names among it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

from platform_assets.sources.area import Area, DateFolder, Kind, Seen, is_left_to_its_writer
from platform_assets.sources.content import expect_open, real, state_of
from platform_assets.sources.landing import Problem, not_as_listed


class FolderArea(Area):
    """Files below a folder.

    Args:
        root: the folder.
        may_be_absent: whether it is no problem if it is not there: whoever lands first makes it.
    """

    def __init__(self, root: Path, *, may_be_absent: bool = False) -> None:
        super().__init__(str(root))
        self._root = root
        self._may_be_absent = may_be_absent
        self._inside = real(root)

    def problem(self) -> Problem | None:
        if is_folder(self._root):
            return None
        todo = "set PLATFORM_LANDING to the folder that sources deliver to, or make it"
        if not _is_gone(self._root):
            return Problem(self.name, "is the landing root and no folder", todo)
        return None if self._may_be_absent else Problem(self.name, "is the landing root and is not there", todo)

    def is_there(self) -> bool:
        return is_folder(self._root)

    def folders(self, above: str) -> list[str]:
        try:
            entries = sorted((self._root / above).iterdir())
        except OSError:
            return []  # of the folder of a source, its listing says so
        return [entry.name for entry in entries if not is_left_to_its_writer(entry.name) and is_folder(entry)]

    def dates(self, folder: str, only: Collection[str] | None, problems: list[Problem]) -> list[str]:
        return _names(self._root / folder, folder, only, problems)

    def date_folder(self, path: str, only: Collection[str] | None) -> DateFolder | Problem:
        entry = self._root / path
        try:
            if entry.is_symlink() or not entry.is_dir():
                return Problem(path, "is a link or a file where a folder should be")
        except OSError as error:
            return not_as_listed(path, error)
        return _Folder(entry, path, only, is_inside=real(entry).is_relative_to(self._inside))

    def has_gone(self, path: str) -> bool:
        return _is_gone(self._root / path)


class _Folder(DateFolder):
    def __init__(self, entry: Path, path: str, only: Collection[str] | None, *, is_inside: bool) -> None:
        self._entry, self._path, self._only, self._is_inside = entry, path, only, is_inside

    def names(self, problems: list[Problem]) -> list[str]:
        return _names(self._entry, self._path, self._only, problems)

    def has(self, name: str) -> bool:
        try:
            return (self._entry / name).exists()
        except OSError:  # a name that is too long, or a folder that is closed to us
            return False

    def look(self, name: str) -> Seen:
        file = self._entry / name
        found = file.lstat()
        is_link = stat.S_ISLNK(found.st_mode) or not self._is_inside
        kind: Kind = "link" if is_link else "file" if stat.S_ISREG(found.st_mode) else "other"
        return Seen(f"{self._path}/{name}", file, kind, found.st_size, found.st_mtime_ns, state_of(found))

    def expect_open(self, seen: Seen) -> None:
        expect_open(seen.file, seen.state)


def is_folder(path: Path) -> bool:
    """Whether it is one, as far as this user may know."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_gone(file: Path) -> bool:
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _names(folder: Path, path: str, only: Iterable[str] | None, problems: list[Problem]) -> list[str]:
    try:
        there = folder.iterdir() if only is None else filter(os.path.lexists, (folder / name for name in only))
        names = sorted(entry.name for entry in there if not is_left_to_its_writer(entry.name))
    except FileNotFoundError:
        return []  # nobody delivered yet, or somebody took it away
    except OSError as error:
        # Where the landing root is a file or a link in a circle, that is told once, and not of every folder in it.
        if error.errno not in (errno.ENOTDIR, errno.ELOOP) or os.path.lexists(folder):
            problems.append(Problem(path, f"cannot be listed: {error.strerror}", "give this user the right to read it"))
        return []
    kept: list[str] = []
    for name in names:
        if name.encode("utf-8", "replace").decode() == name:
            kept.append(name)
        else:
            shown = name.encode("utf-8", "backslashreplace").decode()
            problems.append(Problem(f"{path}/{shown}", "has a name that is not UTF-8", "rename it"))
    return kept
