"""Where sources deliver, as one listing sees it: a folder of this machine, or names in a bucket that begin alike.

What a listing makes of names, dates and times is the same wherever files lie (`sources.listing`); here is what differs.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from platform_assets.lakehouse.errors import LakeError, UnusableNameError
from platform_assets.sources.landing import Problem, State, StoredVersion, expect_open, not_as_listed, real, state_of

if TYPE_CHECKING:
    from platform_assets.lakehouse.storage.location import Entry
    from platform_assets.lakehouse.storage.object_store import Stored

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
Kind = Literal["file", "link", "other"]


@dataclass(frozen=True)
class Seen:
    """Something that lies in the folder of an arrival date.

    Args:
        file: where it is; of an object of a bucket nothing but its path.
        kind: whether it is a file at all.
        modified_ns: last change, nanoseconds since 1970.
        state: by which it is told from another one in its place.
        stored: the object, of one in a bucket.
    """

    path: str
    file: Path
    kind: Kind
    size: int
    modified_ns: int
    state: State
    stored: StoredVersion | None = None


def is_left_to_its_writer(name: str) -> bool:
    """Return whether a name says that nobody else is to look."""
    return name[0] in "._"


class FolderArea:
    """Files below a folder, while one listing looks at them: what it has seen it need not look at twice.

    Args:
        may_be_absent: whether it is no problem if it is not there: whoever lands first makes it.
    """

    def __init__(self, root: Path, *, may_be_absent: bool = False) -> None:
        self.name = str(root)
        self._root = root
        self._may_be_absent = may_be_absent
        self._inside = real(root)

    def problem(self) -> Problem | None:
        """Return why nothing at all can be taken from it, if so."""
        if is_folder(self._root):
            return None
        todo = "set PLATFORM_LANDING to the folder that sources deliver to, or make it"
        if not _is_gone(self._root):
            return Problem(self.name, "is the landing root and no folder", todo)
        return None if self._may_be_absent else Problem(self.name, "is the landing root and is not there", todo)

    def is_there(self) -> bool:
        """Return whether what it does not show is not there, rather than the whole of it out of sight."""
        return is_folder(self._root)

    def folders(self, above: str) -> list[str]:
        """Return names of folders in a folder, without those left to their writer; none if it may not be looked at.

        Args:
            above: below the landing root, or "." for that.
        """
        try:
            entries = sorted((self._root / above).iterdir())
        except OSError:
            return []  # of the folder of a source, its listing says so
        return [entry.name for entry in entries if not is_left_to_its_writer(entry.name) and is_folder(entry)]

    def dates(self, folder: str, only: Collection[str] | None, problems: list[Problem]) -> list[str]:
        """Return names of what lies in the folder of a source, of the `only` ones; what cannot be listed is told."""
        return _names(self._root / folder, folder, only, problems)

    def date_folder(self, path: str, only: Collection[str] | None) -> DateFolder | Problem:
        """Return the folder of an arrival date, with the `only` files to look for, or why it is none."""
        entry = self._root / path
        try:
            if entry.is_symlink() or not entry.is_dir():
                return Problem(path, "is a link or a file where a folder should be")
        except OSError as error:
            return not_as_listed(path, error)
        return _Folder(entry, path, only, is_inside=real(entry).is_relative_to(self._inside))

    def has_gone(self, path: str) -> bool:
        """Return whether nothing lies there any more, as far as this user may know."""
        return _is_gone(self._root / path)


class _Folder:
    """What arrived on one date from one source. Names are told without those that are left to their writer."""

    def __init__(self, entry: Path, path: str, only: Collection[str] | None, *, is_inside: bool) -> None:
        self._entry, self._path, self._only, self._is_inside = entry, path, only, is_inside

    def names(self, problems: list[Problem]) -> list[str]:
        """Return names of what lies in it, sorted; what cannot be listed or has no proper name is a problem."""
        return _names(self._entry, self._path, self._only, problems)

    def has(self, name: str) -> bool:
        """Return whether somebody put it there, as far as this user may know."""
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
        """See that it can be opened, and is what was seen; else ChangedError, LinkError or OSError is raised."""
        expect_open(seen.file, seen.state)


def is_folder(path: Path) -> bool:
    """Return whether it is one, as far as this user may know."""
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


class BucketArea:
    """Objects below a name in a bucket. An object is whole as soon as it is there, and has no links."""

    def __init__(self, root: Stored) -> None:
        self.name = str(root)
        self._root = root
        self._by_date: dict[str, defaultdict[str, dict[str, Entry]]] = {}
        self._names: dict[str, frozenset[str] | None] = {}

    def problem(self) -> Problem | None:
        try:
            self._root.names()
        except LakeError as error:
            return Problem(self.name, f"is the landing root: {error.what.rstrip('.')}", error.todo)
        return None

    def is_there(self) -> bool:
        return self.problem() is None

    def folders(self, above: str) -> list[str]:
        place = self._root if above == "." else self._root / above
        try:
            return _shown(each.name for each in place.folders())
        except LakeError:
            return []  # which `problem` tells

    def dates(self, folder: str, only: Collection[str] | None, problems: list[Problem]) -> list[str]:
        if only is not None:
            return sorted(only)
        try:
            found = (self._root / folder).files()
        except UnusableNameError as error:
            # Each date is listed by itself then, and only that in which such a name lies cannot be
            if not (dates := self.folders(folder)):
                problems.append(_not_listed(folder, error))
            return dates
        except LakeError as error:
            # Where nothing at all can be listed, that is told once, and not of every folder.
            problems += [_not_listed(folder, error)] if self.is_there() else []
            return []
        by_date = self._by_date[folder] = defaultdict(dict)
        for name, each in found.items():
            day, slash, file = name.partition("/")
            by_date[day] |= {file: each} if slash else {}
        return _shown(by_date)

    def date_folder(self, path: str, only: Collection[str] | None) -> DateFolder | Problem:
        folder, _, day = path.rpartition("/")
        by_date = self._by_date.get(folder)
        try:
            objects = (self._root / path).files() if by_date is None else by_date[day]
        except LakeError as error:
            return _not_listed(path, error)
        if not objects and only is None:
            return Problem(path, "is a file where a folder should be")
        return _Objects(self._root, path, objects, only)

    def has_gone(self, path: str) -> bool:
        above, _, name = path.rpartition("/")
        if above not in self._names:
            try:
                self._names[above] = frozenset((self._root / above).files())
            except LakeError:
                self._names[above] = None
        names = self._names[above]
        return names is not None and name not in names


def _not_listed(path: str, error: LakeError) -> Problem:
    return Problem(path, f"cannot be listed: {error.what.rstrip('.')}", error.todo)


class _Objects:
    def __init__(self, root: Stored, path: str, objects: Mapping[str, Entry], only: Collection[str] | None) -> None:
        self._root, self._path, self._objects, self._only = root, path, objects, only

    def names(self, problems: list[Problem]) -> list[str]:
        names = _shown({name.partition("/")[0] for name in self._objects})
        return names if self._only is None else [name for name in names if name in self._only]

    def has(self, name: str) -> bool:
        return name in self._objects

    def look(self, name: str) -> Seen:
        path = f"{self._path}/{name}"
        if (found := self._objects.get(name)) is None:
            return Seen(path, Path(path), "other", 0, 0, (0, 0, 0, 0))
        changed = (found.written - _EPOCH) // timedelta(microseconds=1) * 1000
        # Of what a store says of an object, the tag alone tells it from one of the same size and second.
        tag = int.from_bytes(hashlib.sha256(found.e_tag.encode()).digest()[:7])
        state = (found.size, tag, changed, changed)
        version = StoredVersion(str(self._root), found.e_tag)
        return Seen(path, Path(path), "file", found.size, changed, state, version)

    def expect_open(self, seen: Seen) -> None:
        """Do nothing: whether it may be read is told when it is fetched."""


def _shown(names: Iterable[str]) -> list[str]:
    """Without those that are left to their writer; one that is empty is of an object named like the folder itself."""
    return sorted(name for name in names if name and not is_left_to_its_writer(name))


Area = FolderArea | BucketArea
DateFolder = _Folder | _Objects
