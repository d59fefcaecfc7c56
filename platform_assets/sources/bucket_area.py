"""A landing area in a bucket: names that begin alike, listed once and looked at as if they were folders and files."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from platform_assets.lakehouse.errors import LakeError, UnusableNameError
from platform_assets.lakehouse.storage.object_store import Stored, StoredObject
from platform_assets.sources.area import Area, DateFolder, Seen, is_left_to_its_writer
from platform_assets.sources.landing import Problem, StoredVersion

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class BucketArea(Area):
    """Objects below a name in a bucket. An object is whole as soon as it is there, and has no links."""

    def __init__(self, root: Stored) -> None:
        super().__init__(str(root))
        self._root = root
        self._by_date: dict[str, defaultdict[str, dict[str, StoredObject]]] = {}
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
            found = (self._root / folder).objects()
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
            objects = (self._root / path).objects() if by_date is None else by_date[day]
        except LakeError as error:
            return _not_listed(path, error)
        if not objects and only is None:
            return Problem(path, "is a file where a folder should be")
        return _Folder(self._root, path, objects, only)

    def has_gone(self, path: str) -> bool:
        above, _, name = path.rpartition("/")
        if above not in self._names:
            try:
                self._names[above] = frozenset((self._root / above).objects())
            except LakeError:
                self._names[above] = None
        names = self._names[above]
        return names is not None and name not in names


def _not_listed(path: str, error: LakeError) -> Problem:
    return Problem(path, f"cannot be listed: {error.what.rstrip('.')}", error.todo)


class _Folder(DateFolder):
    def __init__(
        self, root: Stored, path: str, objects: Mapping[str, StoredObject], only: Collection[str] | None
    ) -> None:
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
