"""`withdraw`: take bad deliveries out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated

import typer

from platform_assets.cli.console import opened_platform
from platform_assets.cli.options import DryRun
from platform_assets.cli.session import computing
from platform_assets.engine.late.named_arrivals import Reached, named_arrivals, reached_by, standing_records
from platform_assets.engine.platform import Author
from platform_assets.planning.windows import which
from platform_assets.records.manifest import Arrival
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

_SHOWN = 10

_DAYS = ("table", "days", "which")
_STALE = "Stale through it, at most"

_NAMED = "Files below the landing root, also as 'folder/2017-03-31/*.csv', or what entered later of some."


def withdraw(
    arrivals: Annotated[list[str], typer.Argument(metavar="ARRIVAL…", help=_NAMED)],
    author: Author | None,
    dry_run: DryRun = False,
) -> Report:
    """Have every table computed as if arrivals had never come, all or none; the next refresh mends their days."""
    with opened_platform() as platform:
        paths = named_arrivals(platform, arrivals)
        if author is None:
            chosen = standing_records(platform, paths)
            reached = {table: reached_by(platform, some) for table, some in chosen.items()}
            data = [
                {
                    "table": table,
                    "arrivals": [part.path for part in some],
                    "rows": sum(part.taken for part in some),
                    "days": sorted(reached[table].days),
                    "stale": {name: sorted(days) for name, days in reached[table].stale.items()},
                }
                for table, some in chosen.items()
            ]
            return Report(_chosen_parts(chosen, reached), data)
        from platform_assets.engine.late.withdrawals import withdraw as take_back

        with computing(platform.settings, "withdraw") as (spark, progress):
            done = take_back(platform, spark, paths, author, progress)
    data, lines = [], []
    for one in done:
        arrivals = [str(arrival.origin) for arrival in one.arrivals]
        data.append(picked(one, "table rows", arrivals=arrivals, days=sorted(one.published)))
        of_what = paths[0] if len(paths) == 1 else counted(len(arrivals), "arrival")
        changed = f"{counted(len(one.published), 'day')} changed."
        lines.append(f"{counted(one.rows, 'row')} of {of_what} taken out of {one.table}; {changed}")
    return Report([*lines, "The next refresh mends what reads them."], data)


def _chosen_parts(parts: Mapping[str, Sequence[Arrival]], reached: Mapping[str, Reached]) -> Iterator[Part]:
    for table, some in parts.items():
        rows = counted(sum(part.taken for part in some), "row")
        yield Note("", "would be taken out", f"of {table}: {rows} of {counted(len(some), 'arrival')}")
        for part in some[:_SHOWN]:
            yield f"  {part.path}: {counted(part.taken, 'row')}"
        if len(some) > _SHOWN:
            yield f"  and {len(some) - _SHOWN:,} more: --json names them"
    yield from _reached_parts(reached)
    yield "Nothing was changed: this was a dry run."


def _reached_parts(reached: Mapping[str, Reached]) -> Iterator[Part]:
    by_table: dict[str, frozenset[date]] = {}
    for of_it in reached.values():
        for name, days in of_it.stale.items():
            by_table[name] = by_table.get(name, frozenset()) | days
    changed = {table: of_it.days for table, of_it in reached.items() if of_it.days}
    for title, of_tables in (("Days that it changes", changed), (_STALE, by_table)):
        rows = [(table, f"{len(days):,}", which(days)) for table, days in of_tables.items()]
        if rows:
            yield Table(title, _DAYS, rows, right=("days",))
    for table, of_it in reached.items():
        if of_it.days and of_it.moves_within_days:
            away = counted(of_it.moves_within_days, "day")
            moved = f"where one of these rows replaced a row of another day, up to {away} away"
            yield Note("", "besides", f"{moved}, that day of {table} changes, too, with what reads it")
