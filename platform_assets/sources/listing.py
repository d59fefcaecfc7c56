"""List files to ingest: `<landing root>/<folder>/<arrival date>/<file>` in any format, and replaced files.

A listing opens files and reads none, so its cost does not depend on their size. A file is hashed when it is ingested.

A file that a copy or a backup gave another time is looked at by every listing, of every process. Its hash is remembered
by its identity. That is enough to say that a file is unchanged; what is recorded of one
that is taken is hashed anew, twice.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from platform_assets.contracts import LandingFiles
from platform_assets.contracts.landing import COMPRESSIONS, FORMATS, format_of, without_compression
from platform_assets.lakehouse.errors import LakeError, UnusableNameError
from platform_assets.lakehouse.layout import stored
from platform_assets.places import folder_of
from platform_assets.sources.landing import (
    IS_A_LINK,
    NOT_AS_LISTED,
    Hashes,
    Known,
    LandedFile,
    Listing,
    Problem,
    State,
    StoredVersion,
    content_sha256,
    expect_open,
    not_as_listed,
    real,
    state_of,
)
from platform_assets.sources.limits import Limits

if TYPE_CHECKING:
    from platform_assets.lakehouse.storage.location import Entry
    from platform_assets.lakehouse.storage.object_store import Stored
    from platform_assets.settings import Settings


_OF_THIS_PROCESS = Hashes()


def list_landing(
    area: Area,
    source: LandingFiles,
    known: Mapping[str, Known],
    *,
    until: date,
    settle_s: float,
    limits: Limits | None = None,
    hashes: Hashes = _OF_THIS_PROCESS,
    among: Collection[str] | None = None,
) -> Listing:
    """List arrivals of one source that were not ingested yet.

    An unchanged ingested file is skipped, by size and modification time, without reading it. A file with another time
    is read once for each of its versions, to distinguish a replaced one from a touched one. Names that start with a dot
    or an underscore are left to their writer. An unreadable file is a problem that blocks no other.

    Args:
        among: paths of the only files to look at; nothing else is listed, and no date counts as delivered.
    """
    limits = limits or Limits()
    pending: list[LandedFile] = []
    problems: list[Problem] = []
    delivered: set[date] = set()
    for day, folder, arrived in _arrived(area, source.folder, among, until, problems):
        before, refused = len(problems), False
        files = _without_markers(arrived.names(problems), source)
        if source.complete and not source.marks_files and not arrived.has(source.complete):
            problems += [_not_complete(folder, source.complete)] if files else []
            continue
        for name in files:
            path = f"{folder}/{name}"
            had = known.get(path)
            if had is None and source.marks_files and not arrived.has(f"{name}{source.complete}"):
                problems.append(_not_complete(path, f"{name}{source.complete}"))
                continue
            outcome = _look(arrived, path, day, source, had, settle_s, limits, hashes)
            if isinstance(outcome, LandedFile):
                pending.append(outcome)
            elif outcome is not None:
                problems.append(outcome)
            else:
                refused |= had is not None and had.refused
        is_whole = among is None and not refused and len(problems) == before
        if is_whole and (files or (source.complete and not source.marks_files)):
            delivered.add(day)
    hashes.keep()
    growing = tuple(problem for problem in problems if problem.is_growing)
    others = tuple(problem for problem in problems if not problem.is_growing)
    return Listing(tuple(pending), growing, others, frozenset(delivered))


def _arrived(
    area: Area, folder: str, among: Collection[str] | None, until: date, problems: list[Problem]
) -> Iterator[tuple[date, str, DateFolder]]:
    """Yield arrival dates up to one, each with its folder's path and content."""
    named = None if among is None else _by_date(among, folder)
    for entry in area.dates(folder, named, problems):
        path, day = f"{folder}/{entry}", _arrival_date(entry)
        arrived = area.date_folder(path, None if named is None else named[entry]) if day else None
        if day is None or arrived is None:
            problems.append(Problem(path, "is not a folder named after an arrival date, such as 2017-03-31"))
        elif isinstance(arrived, Problem):
            problems.append(arrived)
        elif day <= until:
            yield day, path, arrived


def _without_markers(names: Iterable[str], source: LandingFiles) -> list[str]:
    if source.complete is None:
        return list(names)
    if source.marks_files:
        return [name for name in names if not name.endswith(source.complete)]
    return [name for name in names if name != source.complete]


def _not_complete(path: str, marker: str) -> Problem:
    return Problem(path, f"is still being delivered: {marker} is not there yet", is_growing=True)


def _by_date(paths: Iterable[str], folder: str) -> dict[str, set[str]]:
    """Return names of files by date folder, for files in the places where a source lands them."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        above, _, name = path.rpartition("/")
        lands, _, day = above.rpartition("/")
        if lands == folder:
            names[day].add(name)
    return names


def _arrival_date(name: str) -> date | None:
    try:
        day = date.fromisoformat(name)
    except ValueError:
        return None
    return day if day.isoformat() == name else None


def _look(
    folder: DateFolder,
    path: str,
    day: date,
    source: LandingFiles,
    known: Known | None,
    settle_s: float,
    limits: Limits,
    hashes: Hashes,
) -> LandedFile | Problem | None:
    try:
        landed = folder.look(PurePosixPath(path).name, day, source)
        if isinstance(landed, Problem):
            return landed
        if known and (known.size, known.modified_ns) == (landed.size, landed.modified_ns):
            return None
        if grows := _growing(landed, settle_s):
            return grows
        if reason := limits.too_large(landed.size):
            return Problem(path, reason)
        if known is None or (known.refused and known.size != landed.size):
            if landed.stored is None:  # an object's permission shows when it is fetched
                expect_open(landed.file, landed.state)
            return landed
        sha256 = hashes.of(landed.file, landed.state)
        sha256 = sha256 or hashes.learn(landed.file, landed.state, content_sha256(landed))
    except NOT_AS_LISTED as error:
        return not_as_listed(path, error)
    if sha256 == known.sha256 or known.refused:
        return None if sha256 == known.sha256 else landed
    taken = f"{known.size} bytes with sha256 {known.sha256[:12]} were taken"
    what = f"was replaced: {taken}, now there are {landed.size} bytes with {sha256[:12]}"
    return Problem(path, what, "deliver a correction under a new name, or give this file one", is_replaced=True)


def _growing(landed: LandedFile, settle_s: float) -> Problem | None:
    age_s = time.time() - landed.modified_ns / 1e9
    if not -settle_s < age_s < settle_s:  # a file server's clock may be a moment ahead
        return None
    return Problem(
        landed.path,
        f"is still growing, changed {max(age_s, 0.0):.1f} s ago; it is ingested once unchanged for {settle_s} s",
        is_growing=True,
        rests_in_s=settle_s - age_s,
    )


def landing_area(settings: Settings) -> Area:
    """Return the landing area, for one listing."""
    if folder := folder_of(settings.landing):
        return FolderArea(folder, may_be_absent=folder == settings.state / "landing")
    return BucketArea(stored(settings.landing))


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _landed(
    path: str,
    file: Path,
    day: date,
    source: LandingFiles,
    size: int,
    modified_ns: int,
    state: State,
    version: StoredVersion | None = None,
) -> LandedFile | Problem:
    """Return a listed file, or the problem that its ending is unknown."""
    name = PurePosixPath(path)
    if kind := format_of(name.name, source):
        return LandedFile(path, file, day, kind, size, modified_ns, state, stored=version)
    if name.suffix.lower().startswith(".xls"):
        todo = "save each sheet as CSV, in which dates and numbers are what people see"
        return Problem(path, "is an Excel file, which is not read", todo)
    ending = PurePosixPath(without_compression(name.name)).suffix + name.name[len(without_compression(name.name)) :]
    known = [*FORMATS, *(source.csv.endings if source.csv else ())]
    known_are = f"known are {', '.join(known)}, and of text {', '.join(COMPRESSIONS)} after it"
    return Problem(path, f"has the unknown ending {ending!r}; {known_are}")


def is_left_to_its_writer(name: str) -> bool:
    """Return whether a name is reserved for its writer."""
    return name[0] in "._"


class FolderArea:
    """Files below a folder during one listing, which reads each folder once."""

    def __init__(self, root: Path, *, may_be_absent: bool = False) -> None:
        self.name = str(root)
        self._root = root
        self._may_be_absent = may_be_absent
        self._inside = real(root)

    def problem(self) -> Problem | None:
        """Return why nothing at all can be ingested from it, if so."""
        if is_folder(self._root):
            return None
        todo = "set PLATFORM_LANDING to the folder that sources deliver to, or make it"
        if not _is_gone(self._root):
            return Problem(self.name, "is the landing root and no folder", todo)
        return None if self._may_be_absent else Problem(self.name, "is the landing root and is not there", todo)

    def is_there(self) -> bool:
        """Return whether unlisted files are gone, rather than the whole area being out of sight."""
        return is_folder(self._root)

    def folders(self, above: str) -> list[str]:
        """Return names of folders in a folder, without reserved ones; none if it cannot be listed."""
        try:
            entries = sorted((self._root / above).iterdir())
        except OSError:
            return []  # of the folder of a source, its listing says so
        return [entry.name for entry in entries if not is_left_to_its_writer(entry.name) and is_folder(entry)]

    def dates(self, folder: str, only: Collection[str] | None, problems: list[Problem]) -> list[str]:
        """Return the names in the folder of a source, restricted to `only`. Adds a problem if it cannot be listed."""
        return _names(self._root / folder, folder, only, problems)

    def date_folder(self, path: str, only: Collection[str] | None) -> DateFolder | Problem:
        """Return the folder of an arrival date, restricted to the `only` files, or the problem with it."""
        entry = self._root / path
        try:
            if entry.is_symlink() or not entry.is_dir():
                return Problem(path, "is a link or a file where a folder should be")
        except OSError as error:
            return not_as_listed(path, error)
        return _Folder(entry, path, only, is_inside=real(entry).is_relative_to(self._inside))

    def has_gone(self, path: str) -> bool:
        """Return whether nothing is there any more, as far as this user can see."""
        return _is_gone(self._root / path)


class _Folder:
    """Deliveries of one date from one source, without names reserved for their writer."""

    def __init__(self, entry: Path, path: str, only: Collection[str] | None, *, is_inside: bool) -> None:
        self._entry, self._path, self._only, self._is_inside = entry, path, only, is_inside

    def names(self, problems: list[Problem]) -> list[str]:
        """Return its names, sorted; a name that cannot be listed or is improper is a problem."""
        return _names(self._entry, self._path, self._only, problems)

    def has(self, name: str) -> bool:
        """Return whether the name exists, as far as this user may see."""
        try:
            return (self._entry / name).exists()
        except OSError:  # a name that is too long, or a folder that is closed to us
            return False

    def look(self, name: str, day: date, source: LandingFiles) -> LandedFile | Problem:
        """Return a file, or the problem with whatever is in its place."""
        path, file = f"{self._path}/{name}", self._entry / name
        found = file.lstat()
        if stat.S_ISLNK(found.st_mode) or not self._is_inside:
            return Problem(path, IS_A_LINK)
        if not stat.S_ISREG(found.st_mode):
            return Problem(path, "is not a file")
        return _landed(path, file, day, source, found.st_size, found.st_mtime_ns, state_of(found))


def is_folder(path: Path) -> bool:
    """Return whether it is a folder, as far as this user can see."""
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
        return []  # nothing was delivered yet, or the folder was removed
    except OSError as error:
        # A landing root that is a file or a circular link is reported once, not for every folder in it.
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
    """Objects below a name in a bucket. An object is whole as soon as it exists, and there are no links."""

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
            return []  # `problem` reports it

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
            # If nothing at all can be listed, that is reported once, not for every folder.
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

    def look(self, name: str, day: date, source: LandingFiles) -> LandedFile | Problem:
        path = f"{self._path}/{name}"
        if (found := self._objects.get(name)) is None:
            return Problem(path, "is not a file")
        changed = (found.written - _EPOCH) // timedelta(microseconds=1) * 1000
        # Of an object's attributes, only the tag distinguishes it from one of the same size and second.
        tag = int.from_bytes(hashlib.sha256(found.e_tag.encode()).digest()[:7])
        version = StoredVersion(str(self._root), found.e_tag)
        return _landed(path, Path(path), day, source, found.size, changed, (found.size, tag, changed, changed), version)


def _shown(names: Iterable[str]) -> list[str]:
    """Return names without reserved ones; an empty name belongs to an object named like the folder itself."""
    return sorted(name for name in names if name and not is_left_to_its_writer(name))


Area = FolderArea | BucketArea
DateFolder = _Folder | _Objects
