"""Landing files: `<landing root>/<folder>/<arrival date>/<file>` in Parquet, CSV or JSON lines, text also as gzip.

A listing opens files and reads none: a terabyte costs as much as nothing. What is in a file is hashed when it is taken.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import BinaryIO

from platform_assets.contracts import LandingFiles
from platform_assets.contracts.landing import COMPRESSED, FORMATS, Format, format_of
from platform_assets.sources.content import (
    ChangedError,
    LinkError,
    State,
    expect_open,
    opened,
    real,
    sha256_of,
    state_of,
)
from platform_assets.sources.hashes import Hashes
from platform_assets.sources.limits import Limits

_OF_THIS_PROCESS = Hashes()
NOT_AS_LISTED = (OSError, ChangedError, LinkError)
"""Errors of whoever opens a file that was listed."""
_IS_A_LINK = "is a symbolic link; only files inside the landing root are taken"


@dataclass(frozen=True)
class LandedFile:
    """A file as it lay in the landing area when it was looked at.

    Args:
        path: below the landing root, with forward slashes.
        file: where it is.
        arrival_date: the date of its folder.
        format: parquet, csv or json.
        size: bytes.
        modified_ns: last change, nanoseconds since 1970.
        state: by which it is told from another one, also from one of the same size and time that took its place.
        sha256: of its content, once `hashed` has read it; empty in a listing.
    """

    path: str
    file: Path
    arrival_date: date
    format: Format
    size: int
    modified_ns: int
    state: State
    sha256: str = ""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """What is in it, to be read, as long as it is the file that was listed.

        Raises:
            ChangedError: it is in another state, or another file.
            LinkError: a link lies on the way to it.
            OSError: it cannot be opened.
        """
        return opened(self.file, self.path, self.state)


@dataclass(frozen=True)
class Known:
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


def list_landing(
    root: Path,
    source: LandingFiles,
    known: Mapping[str, Known],
    *,
    until: date,
    settle_s: float,
    limits: Limits | None = None,
    hashes: Hashes = _OF_THIS_PROCESS,
    among: Collection[str] | None = None,
) -> Listing:
    """Look for arrivals of one source that were not taken yet.

    A file that was taken and did not change is skipped, by size and modification time, without reading it. One of
    another time is read once for each of its versions, to tell a replaced one from a touched one. Names that start with
    a dot or an underscore are left to their writer. What cannot be read is a problem that keeps nothing else back.

    Args:
        root: landing root.
        source: the source.
        known: files taken or refused before, by path.
        until: newest arrival date to take.
        settle_s: a file changed less than this many seconds ago is still growing.
        limits: a file of more bytes is not even read; by default those of the settings' defaults.
        hashes: of files that were read for that.
        among: paths of the only files to look at; nothing else is listed or told, nor any date delivered.
    """
    limits = limits or Limits()
    pending: list[LandedFile] = []
    growing: list[Problem] = []
    problems: list[Problem] = []
    delivered: set[date] = set()
    folder = source.folder
    named = None if among is None else _by_date(among, folder)
    inside = real(root)
    for entry in _entries(root / folder, folder, problems, named):
        day = _arrival_date(entry, folder, problems)
        if day is None or day > until:
            continue
        known_problems = len(problems)
        is_inside = real(entry).is_relative_to(inside)
        names = None if named is None else named[entry.name]
        files = _without_markers(_entries(entry, f"{folder}/{entry.name}", problems, names), source)
        if source.complete and not source.marks_files and not _is_there(entry / source.complete):
            if files:
                growing.append(_not_complete(f"{folder}/{entry.name}", source.complete))
            continue
        left = len(problems) > known_problems
        for file in files:
            path = f"{folder}/{entry.name}/{file.name}"
            had = known.get(path)
            if had is None and source.marks_files and not _is_there(entry / f"{file.name}{source.complete}"):
                growing.append(_not_complete(path, f"{file.name}{source.complete}"))
                left = True
                continue
            outcome = _look(is_inside, path, file, day, had, settle_s, limits, hashes)
            if isinstance(outcome, LandedFile):
                pending.append(outcome)
            elif outcome is not None:
                (growing if outcome.is_growing else problems).append(outcome)
            left |= isinstance(outcome, Problem) or (outcome is None and had is not None and had.refused)
        if named is None and not left and (files or (source.complete and not source.marks_files)):
            delivered.add(day)
    hashes.keep()
    return Listing(tuple(pending), tuple(growing), tuple(problems), frozenset(delivered))


def _is_there(marker: Path) -> bool:
    """Whether somebody put it there; one whose name is too long, or in a folder that is closed to us, nobody did."""
    try:
        return marker.exists()
    except OSError:
        return False


def _without_markers(files: Iterable[Path], source: LandingFiles) -> list[Path]:
    if source.complete is None:
        return list(files)
    if source.marks_files:
        return [file for file in files if not file.name.endswith(source.complete)]
    return [file for file in files if file.name != source.complete]


def _not_complete(path: str, marker: str) -> Problem:
    return Problem(path, f"is still being delivered: {marker} is not there yet", is_growing=True)


def _by_date(paths: Iterable[str], folder: str) -> dict[str, set[str]]:
    """Names of files by that of the date folder, of those that lie where a source lands them."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        above, _, name = path.rpartition("/")
        lands, _, day = above.rpartition("/")
        if lands == folder:
            names[day].add(name)
    return names


def _entries(folder: Path, path: str, problems: list[Problem], names: Iterable[str] | None) -> list[Path]:
    """What lies in a folder, without what is left to its writer; an unreadable folder or name is a problem.

    Args:
        names: of the only ones to look for; None for all.
    """
    try:
        there = folder.iterdir() if names is None else filter(os.path.lexists, (folder / name for name in names))
        entries = sorted(entry for entry in there if entry.name[0] not in "._")
    except FileNotFoundError:
        return []  # nobody delivered yet, or somebody took it away
    except OSError as error:
        # Where the landing root is a file or a link in a circle, that is told once, and not of every folder in it.
        if error.errno not in (errno.ENOTDIR, errno.ELOOP) or os.path.lexists(folder):
            problems.append(Problem(path, f"cannot be listed: {error.strerror}", "give this user the right to read it"))
        return []
    kept: list[Path] = []
    for entry in entries:
        if entry.name.encode("utf-8", "replace").decode() == entry.name:
            kept.append(entry)
        else:
            shown = entry.name.encode("utf-8", "backslashreplace").decode()
            problems.append(Problem(f"{path}/{shown}", "has a name that is not UTF-8", "rename it"))
    return kept


def _arrival_date(entry: Path, folder: str, problems: list[Problem]) -> date | None:
    try:
        day = date.fromisoformat(entry.name)
    except ValueError:
        day = None
    if day is None or day.isoformat() != entry.name:
        problems.append(
            Problem(f"{folder}/{entry.name}", "is not a folder named after an arrival date, such as 2017-03-31")
        )
        return None
    try:
        if entry.is_symlink() or not entry.is_dir():
            problems.append(Problem(f"{folder}/{entry.name}", "is a link or a file where a folder should be"))
            return None
    except OSError as error:
        problems.append(not_as_listed(f"{folder}/{entry.name}", error))
        return None
    return day


def _look(
    is_inside: bool,
    path: str,
    file: Path,
    day: date,
    known: Known | None,
    settle_s: float,
    limits: Limits,
    hashes: Hashes,
) -> LandedFile | Problem | None:
    kind = format_of(file.name)
    try:
        before = file.lstat()
        if stat.S_ISLNK(before.st_mode) or not is_inside:
            return Problem(path, _IS_A_LINK)
        if not stat.S_ISREG(before.st_mode):
            return Problem(path, "is not a file")
        if kind is None:
            ending = "".join(file.suffixes[-2:]) if file.suffix.lower() == COMPRESSED else file.suffix
            known_are = f"known are {', '.join(FORMATS)}, and of text {COMPRESSED} after it"
            return Problem(path, f"has the unknown ending {ending!r}; {known_are}")
        if known and (known.size, known.modified_ns) == (before.st_size, before.st_mtime_ns):
            return None
        age_s = time.time() - before.st_mtime
        if -settle_s < age_s < settle_s:  # a file server's clock may be a moment ahead
            return Problem(
                path,
                f"is still growing, changed {max(age_s, 0.0):.1f} s ago; it is taken once it rests {settle_s} s",
                is_growing=True,
                rests_in_s=settle_s - age_s,
            )
        landed = LandedFile(path, file, day, kind, before.st_size, before.st_mtime_ns, state_of(before))
        if reason := limits.too_large(landed.size):
            return Problem(path, reason)
        if known is None or (known.refused and known.size != landed.size):
            expect_open(file, landed.state)
            return landed
        sha256 = hashes.of(file, landed.state) or hashes.learn(file, landed.state, sha256_of(file, path, landed.state))
    except NOT_AS_LISTED as error:
        return not_as_listed(path, error)
    if sha256 == known.sha256 or known.refused:
        return None if sha256 == known.sha256 else landed
    taken = f"{known.size} bytes with sha256 {known.sha256[:12]} were taken"
    what = f"was replaced: {taken}, now there are {landed.size} bytes with {sha256[:12]}"
    return Problem(path, what, "deliver a correction under a new name, or give this file one", is_replaced=True)


def not_as_listed(path: str, error: Exception) -> Problem:
    """What one of `NOT_AS_LISTED` says of a file, and nothing about what is in it."""
    if isinstance(error, ChangedError):
        return Problem(path, "is still growing, changed while it was read", is_growing=True)
    if isinstance(error, LinkError):
        return Problem(path, _IS_A_LINK)
    return Problem(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")
