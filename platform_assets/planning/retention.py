"""Decisions of maintenance: which releases stay, which files are unneeded, which days have too many files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Literal

from platform_assets.contracts import DAY

Task = Literal["compaction", "checkpoints", "stages", "deletion"]
TASKS: tuple[Task, ...] = ("compaction", "checkpoints", "stages", "deletion")
"""What maintenance does, in this order."""

SMALL_BYTES = 16 * 1024 * 1024
"""A file below this is small: opening it costs more than reading it."""

_A_PAUSE = timedelta(days=7)
"""A usual pause without publications."""

CHECKPOINT_COMMITS = 10
"""A log with fewer commits since its checkpoint is read about as fast as a checkpoint of all."""


@dataclass(frozen=True)
class RetainedReleases:
    """Releases that stay readable.

    Args:
        first: the oldest of those that were current at some time in the rollback window; with all that follow.
        current: the newest, which stays however old it is.
        pinned: older pinned ones, oldest first.
    """

    first: int
    current: int
    pinned: tuple[int, ...] = ()


def kept_releases(
    released: Sequence[tuple[int, datetime]], pins: Collection[int], now: datetime, window: timedelta, cut: int = 0
) -> RetainedReleases:
    """Return the releases that the rollback window and pins keep.

    A release leaves the window when its successor is as old as the window: until then it was the current state within
    the window. A time in which nothing was published counts as no more than half a window: a
    clock that is a year ahead, for one publication or for maintenance alone, looks like such a time. One that was set
    back keeps more, never less.

    Args:
        released: number and time of every release, oldest first; at least one.
        now: the time, UTC.
        window: how long a release stays after it was replaced.
        cut: no release before this one stays, pinned or not: rows that it shows were erased.
    """
    current = released[-1][0]
    replaced = [(number, at) for (number, _), (_, at) in pairwise(released)]
    first = next((number for number, at in replaced if at > now - window), current)
    longest, passed, later = max(window / 2, _A_PAUSE), timedelta(0), now
    for number, at in reversed(replaced):
        passed += min(max(later - at, timedelta(0)), longest)
        if passed >= window:
            break
        first, later = min(first, number), at
    first = max(first, cut)
    known = {number for number, _ in released}
    return RetainedReleases(first, current, tuple(sorted(pin for pin in pins if cut <= pin < first and pin in known)))


@dataclass(frozen=True)
class FileUsage:
    """What the log of a table says about its files.

    Args:
        added: every file that was ever part of the table.
        needed: those that a release that stays needs, each with the newest such release.
    """

    added: frozenset[str] = frozenset()
    needed: Mapping[str, int] = field(default_factory=dict)

    def publications(self) -> frozenset[str]:
        """Return the folders whose files were ever part of the table."""
        return frozenset(path.partition("/")[0] for path in self.added)


@dataclass(frozen=True)
class StagingFolder:
    """The folder of a publication in a table's, as it lies on disk.

    Args:
        files: bytes of each, by its path from the table's folder.
        written: when the newest was written, UTC.
        published: one of its files was ever part of the table.
        in_use: a process is at work on it, or it belongs to a named stage.
    """

    table: str
    publication: str
    files: Mapping[str, int]
    written: datetime
    published: bool = False
    in_use: bool = False

    def is_settled(self, now: datetime, safe_age: timedelta) -> bool:
        """Return whether it will not be written to, or published, any more."""
        return not self.in_use and self.written <= now - safe_age


@dataclass(frozen=True)
class Deletion:
    """Files to delete.

    Args:
        files: bytes of each, by its path from the table's folder.
        whole: nothing else is in the folder, so that it goes too.
        orphan: no release ever referred to the folder.
        is_history: releases that do not stay any more lose files by it.
    """

    table: str
    publication: str
    files: Mapping[str, int]
    whole: bool
    orphan: bool
    is_history: bool

    @property
    def bytes(self) -> int:
        """Return the bytes of all files."""
        return sum(self.files.values())

    @property
    def task(self) -> Task:
        """Whose work it is."""
        return "stages" if self.orphan else "deletion"


def deletion_of(folder: StagingFolder, use: FileUsage, now: datetime, safe_age: timedelta) -> Deletion | None:
    """Return the unneeded files of a folder; None if all of them stay.

    Files that were part of the table go as soon as no release that stays needs them. Files that never were go once the
    folder is settled: until then they may still be published. When the last row has gone, so does the rest, including
    the stage's log.

    Args:
        now: the time, UTC.
        safe_age: how long a folder must have been left alone.
    """
    settled = folder.is_settled(now, safe_age)
    if not folder.published:
        return Deletion(folder.table, folder.publication, folder.files, True, True, False) if settled else None
    rows = {path for path in folder.files if _holds_rows(path)}
    gone = {path for path in rows if path not in use.needed and (path in use.added or settled)}
    beside = {path for path in folder.files if _beside(path) in gone}
    whole = gone == rows
    goes = folder.files if whole else {path: folder.files[path] for path in (*sorted(gone), *sorted(beside))}
    if not goes and not whole:
        return None
    return Deletion(folder.table, folder.publication, goes, whole, False, bool(gone & use.added))


def needed_of(folder: StagingFolder, use: FileUsage) -> tuple[int, int] | None:
    """Return how many files of a folder releases that stay need, and the newest of these releases; None if none."""
    needed = [use.needed[path] for path in folder.files if path in use.needed]
    return (len(needed), max(needed)) if needed else None


def _holds_rows(path: str) -> bool:
    """Return whether a path is `<publication>/event_date=…/….parquet`."""
    parts = path.split("/")
    return len(parts) == 3 and parts[1].startswith(f"{DAY}=") and parts[2].endswith(".parquet")


def _beside(path: str) -> str:
    """Return the file that a checksum file of Hadoop belongs to."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else ""


def days_to_compact(
    files: Mapping[date, Mapping[str, int]], held: Collection[date], most: int, small_bytes: int = SMALL_BYTES
) -> dict[date, tuple[str, ...]]:
    """Return days with more small files than allowed, and these files, which become one, or one per part of the day.

    Args:
        files: of every day, bytes by path; without files that must stay as they are.
        small_bytes: files below this are small.
    """
    to_compact: dict[date, tuple[str, ...]] = {}
    for day, sizes in sorted(files.items()):
        small = tuple(sorted(path for path, size in sizes.items() if size < small_bytes))
        if len(small) > most and day not in held:
            to_compact[day] = small
    return to_compact


def wants_checkpoint(head: int, last: int) -> bool:
    """Return whether enough was committed since the last checkpoint."""
    return head - last >= CHECKPOINT_COMMITS
