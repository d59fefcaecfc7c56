"""`withdraw`: take bad deliveries out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated

import typer

from platform_assets.cli.console import console, opened_platform, print_json, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, DryRun, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.engine.late.named_arrivals import Reached, named_arrivals, reached_by, taken
from platform_assets.planning.windows import which
from platform_assets.records.manifest import Arrival
from platform_assets.words import counted

_SHOWN = 10
"""Files of a table that are named one by one."""

_DAYS = ("table", "days", "which")
_STALE = "Stale through it, at most"

_NAMED = "Files below the landing root, also as 'folder/2017-03-31/*.csv', or what entered later of some."


def withdraw(
    context: typer.Context,
    arrivals: Annotated[list[str], typer.Argument(metavar="ARRIVAL…", help=_NAMED)],
    dry_run: DryRun = False,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Have every table computed as if arrivals had never come, all or none; the next refresh mends their days."""
    if dry_run and reason is None:
        reason = "a dry run"
    author = decided_by(reason, by)
    with opened_platform() as platform:
        paths = named_arrivals(platform, arrivals)
        if dry_run:
            chosen = taken(platform, paths)
            _print_chosen(chosen, {table: reached_by(platform, some) for table, some in chosen.items()}, as_json)
            return
        from platform_assets.engine.late.withdrawals import withdraw as take_back

        with telling(context, "withdraw") as progress, session_on_demand(platform.settings, progress) as spark:
            done = take_back(platform, spark, paths, author, progress)
    if as_json:
        print_json(
            [
                {
                    "table": withdrawal.table,
                    "arrivals": [arrival.origin for arrival in withdrawal.arrivals],
                    "rows": withdrawal.rows,
                    "days": sorted(withdrawal.published),
                }
                for withdrawal in done
            ]
        )
        return
    for withdrawal in done:
        gone, days = counted(withdrawal.rows, "row"), counted(len(withdrawal.published), "day")
        of_what = paths[0] if len(paths) == 1 else counted(len(withdrawal.arrivals), "arrival")
        text = f"{gone} of {of_what} taken out of {withdrawal.table}; {days} changed."
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print("The next refresh mends what reads them.")


def _print_chosen(parts: Mapping[str, Sequence[Arrival]], reached: Mapping[str, Reached], as_json: bool) -> None:
    """What would be taken out, which days that changes, and which read these."""
    if as_json:
        print_json(
            [
                {
                    "table": table,
                    "arrivals": [part.path for part in some],
                    "rows": sum(part.taken for part in some),
                    "days": sorted(reached[table].days),
                    "stale": {name: sorted(days) for name, days in reached[table].stale.items()},
                }
                for table, some in parts.items()
            ]
        )
        return
    for table, some in parts.items():
        rows = counted(sum(part.taken for part in some), "row")
        say("would be taken out", f"of {table}: {rows} of {counted(len(some), 'arrival')}")
        for part in some[:_SHOWN]:
            console.print(f"  {part.path}: {counted(part.taken, 'row')}", markup=False, highlight=False, soft_wrap=True)
        if len(some) > _SHOWN:
            console.print(f"  and {len(some) - _SHOWN:,} more: --json names them", highlight=False)
    _print_reached(reached)
    console.print("Nothing was changed: this was a dry run.")


def _print_reached(reached: Mapping[str, Reached]) -> None:
    changed, stale = new_grid("Days that it changes", _DAYS, right=("days",)), new_grid(_STALE, _DAYS, right=("days",))
    by_table: dict[str, frozenset[date]] = {}
    for table, of_it in reached.items():
        if of_it.days:
            changed.add_row(table, f"{len(of_it.days):,}", which(of_it.days))
        for name, days in of_it.stale.items():
            by_table[name] = by_table.get(name, frozenset()) | days
    for name, days in by_table.items():
        stale.add_row(name, f"{len(days):,}", which(days))
    if any(of_it.days for of_it in reached.values()):
        console.print(changed)
    if by_table:
        console.print(stale)
    for table, of_it in reached.items():
        if of_it.days and of_it.moves_within_days:
            away = counted(of_it.moves_within_days, "day")
            moved = f"where one of these rows replaced a row of another day, up to {away} away"
            say("besides", f"{moved}, that day of {table} changes, too, with what reads it", wrap=True)
