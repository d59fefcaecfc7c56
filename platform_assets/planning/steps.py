"""Which days of which tables follow from what changed: the list of steps a recomputation executes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts import Catalogue
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


def out_of_date(
    catalogue: Catalogue,
    digests: Digests,
    recorded: Mapping[str, Mapping[date, str]],
    calendar: Calendar,
) -> tuple[Step, ...]:
    """The steps that bring every table up to date with its inputs.

    A day is a step if its inputs are loaded and its recorded fingerprint is not the one it would get now, or if such a
    day of an input reaches it.

    Args:
        catalogue: all tables, each after those it reads.
        digests: content of every loaded day.
        recorded: fingerprint of every published day.
        calendar: the days that exist.
    """
    seeds: dict[str, list[date]] = {}
    for contract in catalogue:
        if contract.inputs:
            now = fingerprints(contract, calendar.days(), digests, calendar)
            have = recorded.get(contract.name, {})
            seeds[contract.name] = [day for day, fingerprint in now.items() if have.get(day) != fingerprint]
    return affected(catalogue, seeds, calendar)


def batches(days: Collection[date], most: int) -> tuple[tuple[date, ...], ...]:
    """The days in order, at most `most` at a time: each batch is one Spark job and ends in a publication."""
    ordered = sorted(set(days))
    return tuple(tuple(ordered[at : at + most]) for at in range(0, len(ordered), most))


def arrival_batches(
    bytes_by_date: Mapping[date, int], most_dates: int, least_bytes: int
) -> tuple[tuple[date, ...], ...]:
    """The arrival dates in order, as batches of which each is one publication of raw.

    A batch ends after `most_dates`, unless so little was delivered on them that more dates cost nothing: the late
    files of a whole quarter are one batch.

    Args:
        bytes_by_date: delivered on each date.
        most_dates: per batch.
        least_bytes: that a batch should have before it ends.
    """
    found: list[tuple[date, ...]] = []
    batch: list[date] = []
    size = 0
    for day in sorted(bytes_by_date):
        if len(batch) >= most_dates and size >= least_bytes:
            found.append(tuple(batch))
            batch, size = [], 0
        batch.append(day)
        size += bytes_by_date[day]
    return (*found, tuple(batch)) if batch else tuple(found)
