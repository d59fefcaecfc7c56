"""List what is to be taken: `<landing root>/<folder>/<arrival date>/<file>` in any format, and what was replaced.

A listing opens files and reads none: a terabyte costs as much as nothing. What is in a file is hashed when it is taken.

A file that a copy or a backup gave another time is looked at by every listing, of every process. What it hashes to is
remembered by all that tells its versions apart. That is enough to say that a file is as it was; what is recorded of one
that is taken is hashed anew, twice.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from platform_assets.contracts import LandingFiles
from platform_assets.contracts.landing import COMPRESSED, FORMATS, format_of
from platform_assets.lakehouse.layout import stored
from platform_assets.places import folder_of
from platform_assets.sources.area import Area, BucketArea, DateFolder, FolderArea, Seen
from platform_assets.sources.landing import (
    IS_A_LINK,
    NOT_AS_LISTED,
    Known,
    LandedFile,
    Listing,
    Problem,
    State,
    content_sha256,
    not_as_listed,
)
from platform_assets.sources.limits import Limits

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_MOST = 1 << 16
"""Files of which a version is remembered."""
RESTS_NS = 2_000_000_000
"""Within this time of its last change a file may change once more, and no time of it tell that."""

_Known = dict[str, tuple[State, str]]


class Hashes:
    """The sha256 of versions of files.

    Args:
        file: where processes share it; None for one process alone. One that cannot be read or written costs a look.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file: Final = file
        self._known: _Known = {}
        self._is_looked_up = self._is_new = False

    @staticmethod
    @cache
    def in_state(state: Path) -> Hashes:
        """Return those of an installation, which its process looks up in memory first."""
        return Hashes(state / "hashed.json")

    def of(self, file: Path, state: State) -> str | None:
        """Return the sha256 of a version of a file; None where nobody read it yet."""
        if (found := self._found(file, state)) is None and not self._is_looked_up:
            self._known |= self._kept()
            self._is_looked_up = True  # until somebody lets others know, and may know of others
            found = self._found(file, state)
        return found

    def learn(self, file: Path, state: State, sha256: str) -> str:
        """Remember what somebody has just read, if the version can be told from the next one; gives it back."""
        if time.time_ns() - state[-1] >= RESTS_NS:
            self._known[str(file)] = state, sha256
            self._is_new = True
        return sha256

    def keep(self) -> None:
        """Let other processes know what was learnt; of two at once, one may have to read again."""
        self._is_looked_up = False
        if not self._is_new:
            return
        self._is_new = False
        self._known = dict([*(self._kept() | self._known).items()][-_MOST:])
        if self._file is None:
            return
        with suppress(OSError):
            unfinished = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            unfinished.write_text(json.dumps(self._known), encoding="utf-8")
            unfinished.replace(self._file)

    def _found(self, file: Path, state: State) -> str | None:
        known, sha256 = self._known.get(str(file), (None, None))
        return sha256 if known == state else None

    def _kept(self) -> _Known:
        if self._file is None:
            return {}
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {
                str(path): ((int(size), int(inode), int(modified), int(changed)), str(sha256))
                for path, ((size, inode, modified, changed), sha256) in json.loads(self._file.read_bytes()).items()
            }
        return {}


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
    """Look for arrivals of one source that were not taken yet.

    A file that was taken and did not change is skipped, by size and modification time, without reading it. One of
    another time is read once for each of its versions, to tell a replaced one from a touched one. Names that start with
    a dot or an underscore are left to their writer. What cannot be read is a problem that keeps nothing else back.

    Args:
        settle_s: a file changed less than this many seconds ago is still growing.
        limits: a file of more bytes is not even read; by default those of the settings' defaults.
        among: paths of the only files to look at; nothing else is listed or told, nor any date delivered.
    """
    limits = limits or Limits()
    pending: list[LandedFile] = []
    growing: list[Problem] = []
    problems: list[Problem] = []
    delivered: set[date] = set()
    folder = source.folder
    named = None if among is None else _by_date(among, folder)
    for entry in area.dates(folder, named, problems):
        day = _arrival_date(entry)
        if day is None:
            what = "is not a folder named after an arrival date, such as 2017-03-31"
            problems.append(Problem(f"{folder}/{entry}", what))
            continue
        arrived = area.date_folder(f"{folder}/{entry}", None if named is None else named[entry])
        if isinstance(arrived, Problem):
            problems.append(arrived)
            continue
        if day > until:
            continue
        known_problems = len(problems)
        files = _without_markers(arrived.names(problems), source)
        if source.complete and not source.marks_files and not arrived.has(source.complete):
            if files:
                growing.append(_not_complete(f"{folder}/{entry}", source.complete))
            continue
        left = len(problems) > known_problems
        for name in files:
            path = f"{folder}/{entry}/{name}"
            had = known.get(path)
            if had is None and source.marks_files and not arrived.has(f"{name}{source.complete}"):
                growing.append(_not_complete(path, f"{name}{source.complete}"))
                left = True
                continue
            outcome = _look(arrived, path, day, had, settle_s, limits, hashes)
            if isinstance(outcome, LandedFile):
                pending.append(outcome)
            elif outcome is not None:
                (growing if outcome.is_growing else problems).append(outcome)
            left |= isinstance(outcome, Problem) or (outcome is None and had is not None and had.refused)
        if named is None and not left and (files or (source.complete and not source.marks_files)):
            delivered.add(day)
    hashes.keep()
    return Listing(tuple(pending), tuple(growing), tuple(problems), frozenset(delivered))


def _without_markers(names: Iterable[str], source: LandingFiles) -> list[str]:
    if source.complete is None:
        return list(names)
    if source.marks_files:
        return [name for name in names if not name.endswith(source.complete)]
    return [name for name in names if name != source.complete]


def _not_complete(path: str, marker: str) -> Problem:
    return Problem(path, f"is still being delivered: {marker} is not there yet", is_growing=True)


def _by_date(paths: Iterable[str], folder: str) -> dict[str, set[str]]:
    """Return names of files by that of the date folder, of those that lie where a source lands them."""
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
    known: Known | None,
    settle_s: float,
    limits: Limits,
    hashes: Hashes,
) -> LandedFile | Problem | None:
    name = PurePosixPath(path)
    kind = format_of(name.name)
    try:
        seen = folder.look(name.name)
        if seen.kind == "link":
            return Problem(path, IS_A_LINK)
        if seen.kind != "file":
            return Problem(path, "is not a file")
        if kind is None:
            ending = "".join(name.suffixes[-2:]) if name.suffix.lower() == COMPRESSED else name.suffix
            known_are = f"known are {', '.join(FORMATS)}, and of text {COMPRESSED} after it"
            return Problem(path, f"has the unknown ending {ending!r}; {known_are}")
        if known and (known.size, known.modified_ns) == (seen.size, seen.modified_ns):
            return None
        if grows := _growing(seen, settle_s):
            return grows
        landed = LandedFile(path, seen.file, day, kind, seen.size, seen.modified_ns, seen.state, stored=seen.stored)
        if reason := limits.too_large(landed.size):
            return Problem(path, reason)
        if known is None or (known.refused and known.size != landed.size):
            folder.expect_open(seen)
            return landed
        sha256 = hashes.of(seen.file, seen.state) or hashes.learn(seen.file, seen.state, content_sha256(landed))
    except NOT_AS_LISTED as error:
        return not_as_listed(path, error)
    if sha256 == known.sha256 or known.refused:
        return None if sha256 == known.sha256 else landed
    taken = f"{known.size} bytes with sha256 {known.sha256[:12]} were taken"
    what = f"was replaced: {taken}, now there are {landed.size} bytes with {sha256[:12]}"
    return Problem(path, what, "deliver a correction under a new name, or give this file one", is_replaced=True)


def _growing(seen: Seen, settle_s: float) -> Problem | None:
    age_s = time.time() - seen.modified_ns / 1e9
    if not -settle_s < age_s < settle_s:  # a file server's clock may be a moment ahead
        return None
    return Problem(
        seen.path,
        f"is still growing, changed {max(age_s, 0.0):.1f} s ago; it is taken once it rests {settle_s} s",
        is_growing=True,
        rests_in_s=settle_s - age_s,
    )


def landing_area(settings: Settings) -> Area:
    """Return where sources deliver, to be looked at once."""
    if folder := folder_of(settings.landing):
        return FolderArea(folder, may_be_absent=folder == settings.state / "landing")
    return BucketArea(stored(settings.landing))
