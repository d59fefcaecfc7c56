"""Which days of a plan are computed to be looked at: a few of those it names, and all of the plan that they read."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.contracts import Catalogue
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import Calendar, day_range, union_read


def sampled_days(
    plan: Plan, sample: Collection[date], tables: Collection[str], catalogue: Catalogue, calendar: Calendar
) -> dict[str, frozenset[date]]:
    """The days of a plan, by table, that come out as with all of it though only these are computed.

    Of the named tables the sample, with what the plan computes of all that it reads; of tables made from these the days
    that read no day of the plan but those.

    Args:
        plan: all of it.
        sample: some of the days that the plan file names.
        tables: that it names.
        catalogue: all tables, each after those it reads.
        calendar: the days that exist.
    """
    planned = {step.table: frozenset(step.days) for step in plan.steps}
    chosen = {table: planned.get(table, frozenset()).intersection(sample) for table in tables}
    for contract in reversed(catalogue.tables):
        for table, days in _read(catalogue, contract.name, chosen.get(contract.name, ()), calendar).items():
            chosen[table] = chosen.get(table, frozenset()) | (days & planned.get(table, frozenset()))
    made_from = set(catalogue.with_inputs(tables))
    for contract in catalogue:
        if contract.name in made_from:
            continue
        chosen[contract.name] = frozenset(
            day
            for day in planned.get(contract.name, ())
            if all(
                days & planned.get(table, frozenset()) <= chosen.get(table, frozenset())
                for table, days in _read(catalogue, contract.name, (day,), calendar).items()
            )
        )
    return {table: days for table, days in chosen.items() if days}


def _read(catalogue: Catalogue, table: str, days: Collection[date], calendar: Calendar) -> dict[str, frozenset[date]]:
    """What days of a table read, by input."""
    read: dict[str, frozenset[date]] = {}
    for one in catalogue[table].inputs:
        spans = union_read(one.window, days, calendar)
        read[one.table] = read.get(one.table, frozenset()).union(*(day_range(*span) for span in spans))
    return read
