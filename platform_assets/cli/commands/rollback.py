"""`rollback`: put days back as they were before a publication, a run or a release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.amounts_view import print_unread, sums_json, sums_shown
from platform_assets.cli.console import UsageError, console, opened_platform, parse_days, print_json
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Days, DryRun, Reason
from platform_assets.cli.progress import telling
from platform_assets.planning.windows import day_range, which
from platform_assets.progress import meanwhile
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.rollback.rollback import Rollback

_AGAIN = "they are computed again when their input or code is another one, or by `refresh --force`."
_UNTIL = (
    "One new row in what such a day is made from ends the rollback, and what was taken back counts again. For good, "
    "`withdraw` what was delivered wrongly or correct the code; `refresh --explain` names rollbacks that end."
)


def rollback(
    context: typer.Context,
    publication: Annotated[str | None, typer.Argument(help="As `releases` or `why` name it.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Everything that this run published.")] = None,
    to: Annotated[int | None, typer.Option("--to", help="Everything published after this release.")] = None,
    days: Days = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="Also what later publications made of the days.")] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Put exactly the days of a publication, a run or since a release back as they were, and hold them there."""
    if sum(given is not None for given in (publication, run, to)) != 1:
        raise UsageError(
            "Name what to roll back: a publication, --run RUN or --to RELEASE, one of them.",
            "`platform-assets releases` lists all three.",
        )
    if dry_run and reason is None:
        reason = "a dry run"
    author = decided_by(reason, by)
    from platform_assets.operations.rollback.amounts import rolled_back_amounts
    from platform_assets.operations.rollback.rollback import rollback as roll_back
    from platform_assets.operations.rollback.selection import chosen_publications

    with opened_platform() as platform:
        chosen = chosen_publications(platform, publication, run, to)
        only = None if days is None else parse_days(days, platform.settings)
        with telling(context, "rollback") as progress:
            done = roll_back(platform, chosen, author, days=only, cascade=cascade, dry_run=dry_run, progress=progress)
            with meanwhile(progress, "summing what changes"):
                amounts = rolled_back_amounts(platform, done)
    if as_json:
        print_json(_json(done, amounts))
    else:
        _print(done, amounts)


def _print(done: Rollback, amounts: AmountChanges) -> None:
    title = "Rolled back" if done.release is not None else "Would be rolled back"
    counts = ("rows before", "rows after")  # the rollback, whether it was done or not
    named = ("amounts",) if amounts.by_day else ()
    grid = new_grid(title, ("table", "days", *counts, *named), right=counts, whole=("table", *named))
    for table, days in done.days.items():
        undone, back = zip(*(done.records[table, day] for day in days), strict=True)
        rows = sum(record.rows for record in back if record)
        told = [sums_shown(amounts.of(table, days))] if named else []
        grid.add_row(table, which(days), f"{sum(record.rows for record in undone):,}", f"{rows:,}", *told)
    console.print(grid)
    print_unread(amounts)
    lines = [
        *_without_content(done),
        f"{', '.join(done.raw)}: raw is append-only and stays; `withdraw` takes a delivery out." if done.raw else "",
        *(
            f"{table}: days that read these are stale then; the next refresh takes up those whose input is there."
            for table in done.stale
        ),
    ]
    if done.release is None:
        shows, will, did = "", "would be", "do"
    else:
        shows, will, did = f"Release {done.release} shows it. ", "are", "did"
    lines += [
        f"{shows}Days whose inputs {did} not go back {will} held: {_AGAIN}",
        _UNTIL,
        "Nothing was changed: this was a dry run." if done.release is None else "",
    ]
    for line in filter(None, lines):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _without_content(done: Rollback) -> Iterator[str]:
    """Days that become as if never computed; rows in quarantine go with a day, and are none that readers miss."""
    of_tables: defaultdict[str, list[date]] = defaultdict(list)
    aside: list[date] = []
    for (table, day), (undone, back) in sorted(done.records.items()):
        if back is None and not table.startswith("quarantine."):
            of_tables[table].append(day)
        elif back is None and undone.rows:
            aside.append(day)
    if of_tables:
        see, count = "see" if done.release is not None else "would see", sum(map(len, of_tables.values()))
        named = ", ".join(f"{table} {which(days)}" for table, days in of_tables.items())
        yield f"{counted(count, 'day')} had no content before: readers {see} nothing of {named}, as if never computed."
    if aside:
        goes = "would go" if done.release is None else "goes"
        yield f"The quarantine of {counted(len(aside), 'day')} ({which(aside)}) {goes}, too."


def _json(done: Rollback, amounts: AmountChanges) -> dict[str, Any]:
    return {
        "publications": [record.publication for record in done.publications],
        "release": done.release,
        "days": [
            {
                "table": table,
                "day": day,
                "digest": {"before": undone.digest, "after": back.digest if back else None},
                "rows": {"before": undone.rows, "after": back.rows if back else None},
                "sums": sums_json(amounts.of(table, [day])),
            }
            for (table, day), (undone, back) in sorted(done.records.items())
        ],
        "amounts_not_told": dict(amounts.unread),
        "raw": list(done.raw),
        "stale": {
            table: [day for start, end in spans for day in day_range(start, end)] for table, spans in done.stale.items()
        },
    }
