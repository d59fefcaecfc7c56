"""Steps of a recomputation: a table and its days, and their batches.

Days between which a record has moved are published together or not at all: otherwise the record would be counted twice
or nowhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.records.manifest import DataFile

_NO_SIZES: Mapping[date, int] = {}


@dataclass(frozen=True)
class Step:
    """A table and its days to recompute, oldest first."""

    table: str
    days: tuple[date, ...]


def batches(
    days: Collection[date],
    most: int,
    ties: Iterable[Tie] = (),
    sizes: Mapping[date, int] = _NO_SIZES,
    least_bytes: int = 0,
    most_bytes: float = math.inf,
) -> tuple[tuple[date, ...], ...]:
    """Split days, or arrival dates, in order, into batches. Each batch is one Spark job and one publication.

    A batch ends after `most` days, unless so little is read for them that more days cost nothing: starting a job and
    publishing take as long for a day as for a year. Tied days are in the same batch, even if there are more of them,
    since none may be published without the others.

    Args:
        sizes: bytes read for a day, or delivered on it; 0 for days left out.
        least_bytes: smallest size of a batch, also of the last one.
        most_bytes: largest size of a batch, unless one day, or tied days, have more.
    """
    groups_of_days = groups(days, ties)
    sized = [(len(group), sum(sizes.get(day, 0) for day in group)) for group in groups_of_days]
    cut = _cut(sized, most, least_bytes, most_bytes)
    return tuple(tuple(sorted(day for group in groups_of_days[start:end] for day in group)) for start, end in cut)


def days_of(some: Sequence[tuple[date, ...]]) -> set[date]:
    """Return all days of some batches."""
    return {day for batch in some for day in batch}


def put_off(to_come: Sequence[tuple[date, ...]], days: Mapping[date, date]) -> list[tuple[date, ...]]:
    """Return the batches to come, each with the days that must be computed with one of its own.

    Args:
        days: each with a day of one of the batches.
    """
    return [tuple(sorted({*batch, *(day for day, root in days.items() if root in batch)})) for batch in to_come]


def _cut(sizes: Sequence[tuple[int, int]], most: int, least_bytes: float, most_bytes: float) -> list[tuple[int, int]]:
    """Return the bounds of batches of groups (days, bytes)."""
    spans: list[tuple[int, int]] = []
    start = days = size = before = 0
    for n, (more_days, more_bytes) in enumerate(sizes):
        is_whole = days + more_days > most and size >= least_bytes
        if n > start and (is_whole or size + more_bytes > most_bytes):
            spans.append((start, n))
            start, days, size, before = n, 0, 0, size
        days, size = days + more_days, size + more_bytes
    if sizes:
        spans.append((start, len(sizes)))
    if len(spans) > 1 and size < least_bytes and before + size <= most_bytes:
        spans[-2:] = [(spans[-2][0], spans[-1][1])]
    return spans


def newest_to_take(files_by_date: Mapping[date, int], most_files: int) -> date | None:
    """Return the newest arrival date of a run that ingests files oldest first, whole arrival dates at a time.

    Args:
        files_by_date: number of waiting files, by arrival date.
        most_files: most files of a run; a single date may have more, and is ingested whole.

    Returns:
        The newest arrival date to take; None where nothing has to be left.
    """
    total = 0
    taken: date | None = None
    for day in sorted(files_by_date):
        total += files_by_date[day]
        if taken is not None and total > most_files:
            return taken
        taken = day
    return None


Tie = tuple[date, date]
"""The day that a record has left, and the one that it came to."""


def held_together(failing: Collection[date], ties: Iterable[Tie]) -> dict[date, date]:
    """Return the days that a failing day keeps from being published, over any number of ties, each with that day."""
    neighbours = _neighbours(ties)
    roots: dict[date, date] = {}
    for root in sorted(failing):
        reached = [root]
        while reached:
            for day in neighbours[reached.pop()] - roots.keys() - set(failing):
                roots[day] = root
                reached.append(day)
    return roots


def groups(days: Collection[date], ties: Iterable[Tie]) -> tuple[tuple[date, ...], ...]:
    """Return some days as groups without ties between them, each in order, the group with the oldest day first."""
    left = set(days)
    neighbours = _neighbours((day, other) for day, other in ties if day in left and other in left)
    tied: list[tuple[date, ...]] = []
    for first in sorted(left):
        if first not in left:
            continue
        together, reached = {first}, [first]
        while reached:
            new = neighbours[reached.pop()] - together
            together |= new
            reached += new
        left -= together
        tied.append(tuple(sorted(together)))
    return tuple(tied)


def _neighbours(ties: Iterable[Tie]) -> defaultdict[date, set[date]]:
    neighbours: defaultdict[date, set[date]] = defaultdict(set)
    for day, other in ties:
        neighbours[day].add(other)
        neighbours[other].add(day)
    return neighbours


NO_PARTS: Mapping[date, int] = {}
"""All days lie in one file each."""

AS_ROWS = 4
"""How many times as many bytes rows take between two tasks as in a file: a rule of thumb, by which nothing but the size
of files is decided."""


def parts_of(sizes: Mapping[date, int], part_bytes: int) -> dict[date, int]:
    """Return the number of parts of each large day; days of one part are left out.

    Args:
        sizes: bytes of every day, as files.
        part_bytes: most bytes of one task and one file.
    """
    return {day: -(-size // part_bytes) for day, size in sizes.items() if size > part_bytes}


def whole_parts_of(sizes: Mapping[date, int], part_bytes: int) -> dict[date, int]:
    """Return the number of parts for files that are not to be small: none has less, but for chance."""
    return {day: size // part_bytes for day, size in sizes.items() if size >= 2 * part_bytes}


def bytes_among(files: Mapping[date, Collection[DataFile]], names: Collection[str]) -> dict[date, int]:
    """Return the bytes of every day in some of its files."""
    among = frozenset(names)
    return {day: sum(file.size for file in of_day if file.path in among) for day, of_day in files.items()}


def has_heavy_key(parts: int, rows: int, most: int) -> bool:
    """Return whether rows of one key exceed a part of its day: one task would work while others wait."""
    return parts > 1 and most * parts > rows
