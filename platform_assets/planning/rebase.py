"""Staged days that others overtook: what has to be computed again before a stage can be published."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.planning.windows import Calendar, union_reached


def overtaken(
    contracts: Iterable[Contract],
    staged: Mapping[str, Collection[date]],
    changed: Mapping[str, Collection[date]],
    calendar: Calendar,
) -> dict[str, tuple[date, ...]]:
    """The staged days that somebody published since, and those that read, directly or not, a day that is another one.

    Args:
        contracts: of all tables, inputs before what is made from them.
        staged: days of the stage, by table.
        changed: days that others published since the stage's release, by table.
        calendar: the days that exist.

    Returns:
        The days to compute again, oldest first, by table in the order of the contracts.
    """
    by_table: dict[str, tuple[date, ...]] = {}
    for contract in contracts:
        mine = set(staged.get(contract.name, ()))
        again = mine.intersection(changed.get(contract.name, ()))
        for read in contract.inputs:
            other = {*changed.get(read.table, ()), *by_table.get(read.table, ())}
            spans = union_reached(read.window, other, calendar) if other else ()
            again |= {day for day in mine if any(start <= day <= end for start, end in spans)}
        if again:
            by_table[contract.name] = tuple(sorted(again))
    return by_table
