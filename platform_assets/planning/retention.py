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
        first: oldest release that was current at some time in the rollback window; all later ones stay too.
        current: the newest, which stays however old it is.
        pinned: older pinned releases, oldest first.
    """

    first: int
    current: int
    pinned: tuple[int, ...] = ()


def kept_releases(
    released: Sequence[tuple[int, datetime]], pins: Collection[int], now: datetime, window: timedelta, cut: int = 0
) -> RetainedReleases:
    """Return the releases kept by the rollback window and pins.

    A release leaves the window when its successor is as old as the window: until then it was the current state within
    the window. A time without publications counts as at most half a window: a clock that is a year ahead looks like
    such a time. A clock that was set back keeps more, never less.

    Args:
        released: number and time of every release, oldest first; at least one.
        now: the time, UTC.
        window: how long a release stays after it was replaced.
        cut: first release that may stay, pinned or not: earlier ones show erased rows.
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
    """Files in the log of a table.

    Args:
        added: every file that was ever part of the table.
        needed: files that a kept release needs, each with the newest such release.
    """

    added: frozenset[str] = frozenset()
    needed: Mapping[str, int] = field(default_factory=dict)

    def publications(self) -> frozenset[str]:
        """Return the folders whose files were ever part of the table."""
        return frozenset(path.partition("/")[0] for path in self.added)


@dataclass(frozen=True)
class StagingFolder:
    """The folder of a publication in a table's folder, on disk.

    Args:
        files: bytes of each, by its path from the table's folder.
        written: time of the newest write, UTC.
        published: whether one of its files was ever part of the table.
        in_use: whether a process is working on it, or it belongs to a named stage.
    """

    table: str
    publication: str
    files: Mapping[str, int]
    written: datetime
    published: bool = False
    in_use: bool = False

    def is_settled(self, now: datetime, safe_age: timedelta) -> bool:
        """Return whether it will no longer be written to or published."""
        return not self.in_use and self.written <= now - safe_age


@dataclass(frozen=True)
class Deletion:
    """Files to delete.

    Args:
        files: bytes of each, by its path from the table's folder.
        whole: whether nothing else is in the folder, so that it is deleted too.
        orphan: whether no release ever referred to the folder.
        is_history: whether releases that are no longer kept lose files by it.
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
        """Return the maintenance task that deletes it."""
        return "stages" if self.orphan else "deletion"


def deletion_of(folder: StagingFolder, use: FileUsage, now: datetime, safe_age: timedelta) -> Deletion | None:
    """Return the unneeded files of a folder; None if all of them stay.

    Files that were part of the table are deleted when no kept release needs them. Other files are deleted once the
    folder is settled: until then they may still be published. The rest, including the stage's log, is deleted with the
    last row.

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
    """Return how many files of a folder kept releases need, and the newest of these releases; None if none."""
    needed = [use.needed[path] for path in folder.files if path in use.needed]
    return (len(needed), max(needed)) if needed else None


def _holds_rows(path: str) -> bool:
    """Return whether a path is `<publication>/event_date=…/….parquet`."""
    parts = path.split("/")
    return len(parts) == 3 and parts[1].startswith(f"{DAY}=") and parts[2].endswith(".parquet")


def _beside(path: str) -> str:
    """Return the file of a Hadoop checksum file."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else ""


def days_to_compact(
    files: Mapping[date, Mapping[str, int]], held: Collection[date], most: int, small_bytes: int = SMALL_BYTES
) -> dict[date, tuple[str, ...]]:
    """Return days with more small files than allowed, and these files, to merge into one, or one per part of the day.

    Args:
        files: files of every day, bytes by path; without files that must stay unchanged.
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
