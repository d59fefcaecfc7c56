"""Which days of which tables a plan file is about: those it names, and those of other tables that they reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from platform_assets.contracts import Catalogue
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.key_scope import KeyScope
from platform_assets.planning.selection import Request
from platform_assets.planning.windows import Calendar, day_range, union_reached


def reached_days(
    catalogue: Catalogue, named: Mapping[str, Collection[date]], calendar: Calendar
) -> dict[str, frozenset[date]]:
    """The named days and all that read them, through every window: what becomes stale if they come out differently.

    Args:
        catalogue: all tables, each after those it reads.
        named: days by table.
        calendar: the days that exist.
    """
    reached = {table: set(days) for table, days in named.items()}
    for contract in catalogue:
        for read in contract.inputs:
            for span in union_reached(read.window, reached.get(read.table, ()), calendar):
                reached.setdefault(contract.name, set()).update(day_range(*span))
    return {table: frozenset(days) for table, days in reached.items() if days}


def request_for(
    file: PlanFile,
    by_table: Mapping[str, frozenset[date]],
    keys: KeyScope | None,
    protected_too: frozenset[date] | None = None,
) -> Request:
    """What a plan file asks for of some days of tables.

    Args:
        file: the plan file.
        by_table: days of each table.
        keys: of which alone it asks for rows.
        protected_too: protected days that are planned, too; by default those that the file overrides.
    """
    overridden = file.override_protected.named() if file.override_protected else frozenset()
    return Request(
        frozenset(file.tables),
        by_person=True,
        force=file.policy == "recompute",
        by_table=by_table,
        protected_too=overridden if protected_too is None else protected_too,
        keys=keys,
    )


def backfill_request(
    file: PlanFile,
    days: frozenset[date],
    catalogue: Catalogue,
    calendar: Calendar,
    computed: Mapping[str, Collection[date]],
    keys: KeyScope | None = None,
) -> Request:
    """What a plan file asks for, as every refresh asks for something; of protected days, explaining it tells.

    Args:
        file: the plan file.
        days: that it names, found.
        catalogue: all tables.
        calendar: the days that exist.
        computed: the days of each table that were ever computed.
        keys: of which alone it asks for rows.
    """
    named: dict[str, Collection[date]] = dict.fromkeys(file.tables, days)
    if file.policy == "fill_gaps":
        named = {table: days.difference(computed.get(table, ())) for table in named}
    by_table = {table: frozenset(of_table) for table, of_table in named.items()}
    if file.downstream:
        by_table = reached_days(catalogue, named, calendar)
    return request_for(file, by_table, keys, frozenset(calendar.days()))
