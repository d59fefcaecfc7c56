"""Which days of which tables follow from what changed: the list of steps a recomputation executes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.fingerprints import Digests, fingerprints
from platform_assets.planning.windows import Calendar, day_range, days_reached


@dataclass(frozen=True)
class Step:
    """One table and the days of it to recompute, oldest first."""

    table: str
    days: tuple[date, ...]


def affected(catalogue: Catalogue, changed: Mapping[str, Collection[date]], calendar: Calendar) -> tuple[Step, ...]:
    """Everything that changed days reach through the declared windows, themselves included.

    Args:
        catalogue: all tables, each after those it reads.
        changed: days whose content changed, by table.
        calendar: days outside it are left out.

    Returns:
        One step per table that anything reaches, each after the tables it reads; raw tables are never steps.
    """
    dirty: dict[str, set[date]] = {table: set(days) for table, days in changed.items()}
    for contract in catalogue:
        for read in contract.inputs:
            spans = {days_reached(read.window, day, calendar) for day in dirty.get(read.table, ())}
            for start, end in spans:
                dirty.setdefault(contract.name, set()).update(day_range(start, end))
    return tuple(
        Step(contract.name, tuple(sorted(days)))
        for contract in catalogue
        if contract.inputs and (days := dirty.get(contract.name))
    )


@dataclass(frozen=True)
class Standing:
    """What planning knows of every table's days.

    Args:
        digests: content of every loaded day, by table.
        recorded: fingerprint of every published day, by table.
        refused: days that are held, each with a fingerprint that must not be published, by table.
        calendar: the days that exist.
    """

    digests: Digests
    recorded: Mapping[str, Mapping[date, str]]
    refused: Mapping[str, Collection[tuple[date, str]]]
    calendar: Calendar


def stale(contract: Contract, days: Collection[date], standing: Standing) -> dict[date, str]:
    """The days that are not what they would be made from now, and the fingerprint each would get.

    A day is left out while an input of it was never loaded, and while it would get a fingerprint that is refused: only
    other input, or other code, makes another attempt worth its while. A held day whose inputs are again as they were
    when it was last right counts as well, because that lifts its hold.
    """
    now = fingerprints(contract, days, standing.digests, standing.calendar)
    have = standing.recorded.get(contract.name, {})
    refused = standing.refused.get(contract.name, ())
    held = {day for day, _ in refused}
    return {
        day: mark for day, mark in now.items() if (have.get(day) != mark or day in held) and (day, mark) not in refused
    }


def out_of_date(catalogue: Catalogue, standing: Standing) -> tuple[Step, ...]:
    """The steps that bring every table up to date with its inputs.

    A day is a step if it is stale, or if a stale day of an input reaches it.

    Args:
        catalogue: all tables, each after those it reads.
        standing: where their days stand.
    """
    every_day = standing.calendar.days()
    seeds = {contract.name: stale(contract, every_day, standing) for contract in catalogue if contract.inputs}
    return affected(catalogue, seeds, standing.calendar)


def batches(days: Collection[date], most: int) -> tuple[tuple[date, ...], ...]:
    """The days in order, at most `most` at a time: each batch is one Spark job and ends in a publication."""
    ordered = sorted(set(days))
    return tuple(tuple(ordered[at : at + most]) for at in range(0, len(ordered), most))


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
