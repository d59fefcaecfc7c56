"""What a recomputation executes: a table and its days, and how they are cut into batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from platform_assets.planning.ties import Tie, groups


@dataclass(frozen=True)
class Step:
    """One table and the days of it to recompute, oldest first."""

    table: str
    days: tuple[date, ...]


def batches(days: Collection[date], most: int, ties: Iterable[Tie] = ()) -> tuple[tuple[date, ...], ...]:
    """The days in order, at most `most` at a time: each batch is one Spark job and ends in a publication.

    Days that are tied are in the same batch, even if there are more of them, since none may be published without the
    others.
    """
    found: list[list[date]] = []
    for together in groups(days, ties):
        if found and len(found[-1]) + len(together) <= most:
            found[-1] += together
        else:
            found.append([*together])
    return tuple(tuple(sorted(batch)) for batch in found)


def arrival_batches(
    bytes_by_date: Mapping[date, int], most_dates: int, least_bytes: int
) -> tuple[tuple[date, ...], ...]:
    """The arrival dates in order, as batches of which each is one publication of raw.

    A batch ends after `most_dates`, unless so little was delivered on them that more dates cost nothing: the late
    files of a whole quarter are one batch, or the end of the batch before.

    Args:
        bytes_by_date: delivered on each date.
        most_dates: per batch.
        least_bytes: that a batch should have before it ends, and that what is left should have to be one.
    """
    found: list[list[date]] = [[]]
    size = 0
    for day in sorted(bytes_by_date):
        if len(found[-1]) >= most_dates and size >= least_bytes:
            found.append([])
            size = 0
        found[-1].append(day)
        size += bytes_by_date[day]
    if len(found) > 1 and size < least_bytes:
        found[-2:] = [found[-2] + found[-1]]
    return tuple(tuple(batch) for batch in found if batch)


def newest_to_take(files_by_date: Mapping[date, int], most_files: int) -> date | None:
    """How far a run goes that takes files oldest first, whole arrival dates at a time.

    Args:
        files_by_date: number of files that wait, by arrival date.
        most_files: per run; a single date may have more, and is taken all the same.

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
