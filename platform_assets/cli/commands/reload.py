"""`reload`: take the deliveries of a raw table anew, by the contract as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import EXIT_LOOK, console, opened_platform, print_json, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, DryRun, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.planning.windows import which
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.reload import Reload

_REFUSED_SHOWN = 5


def reload(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="A raw table, for example raw.transactions.")],
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take all deliveries of a raw table anew, by its contract as it is now; what is made from it begins anew, too."""
    author = None if dry_run else decided_by(reason, by)
    from platform_assets.operations.reload import planned_reload
    from platform_assets.operations.reload import reload as take_anew

    with opened_platform() as platform, telling(context, "reload") as progress:
        if author is None:
            done = planned_reload(platform, table, progress)
        else:
            with session_on_demand(platform.settings, progress) as spark:
                done = take_anew(platform, spark, table, author, progress)
    if as_json:
        print_json(_json(done))
    else:
        _print(done)
    if done.taken and any(arrival.reason for arrival in done.taken.arrivals):
        raise typer.Exit(EXIT_LOOK)


def _print(done: Reload) -> None:
    title = "Would begin anew" if done.taken is None else "Began anew"
    grid = new_grid(title, ("table", "days", "rows before"), right=("rows before",), whole=("table",))
    for table, days in done.days.items():
        grid.add_row(table, which(days), f"{done.rows[table]:,}")
    console.print(grid)
    if done.taken is None:
        _say(
            f"{counted(done.files, 'file')} of {done.table} would be taken anew. Until the refresh after that, readers "
            f"would see nothing of these days; release {done.before} would still show them. Nothing was changed: this "
            "was a dry run."
        )
        return
    arrivals = done.taken.arrivals
    rows = sum(arrival.taken for arrival in arrivals)
    _say(
        f"{counted(len(arrivals), 'file')} of {done.table} taken anew: {counted(rows, 'row')} in "
        f"{counted(len(done.taken.published), 'day')}, {sum(a.refused for a in arrivals):,} refused, "
        f"{sum(a.late for a in arrivals):,} waiting."
    )
    refused = [arrival for arrival in arrivals if arrival.reason is not None]
    for arrival in refused[:_REFUSED_SHOWN]:
        say("[red]refused[/]", f"{arrival.path}: {arrival.reason}")
    if len(refused) > _REFUSED_SHOWN:
        _say(f"and {len(refused) - _REFUSED_SHOWN:,} more files: `platform-assets status`.")
    _say(f"The next refresh computes what reads them. Release {done.before} shows everything as it was.")


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _json(done: Reload) -> dict[str, Any]:
    taken = done.taken
    return {
        "table": done.table,
        "files": done.files,
        "release": done.release,
        "before": done.before,
        "days": {table: list(days) for table, days in done.days.items()},
        "rows_before": dict(done.rows),
        "taken": taken
        and {
            "arrivals": [
                {
                    name: getattr(arrival, name)
                    for name in ("path", "landed", "taken", "refused", "late", "erased", "reason")
                }
                for arrival in taken.arrivals
            ],
            "days": sorted(taken.published),
        },
    }
