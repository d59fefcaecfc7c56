"""`late`: rows that came too late, or too far ahead, to be taken as they come; and what to do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    UsageError,
    console,
    escape,
    opened_platform,
    parse_days,
    platform_to_look,
    print_json,
    without_numpy,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Days, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.planning.late_queue import LateRows, LateSelection, counts_of
from platform_assets.planning.windows import which
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.late.approvals import Approval

app = typer.Typer(
    help="Rows that came too late wait until somebody approves or refuses them; those too far ahead, until their day.",
    no_args_is_help=True,
)

Arrival = Annotated[str | None, typer.Argument(help="An arrival, as `late list` shows it.")]
OfTable = Annotated[str | None, typer.Option("--table", help="Instead of an arrival: a raw table, with --days.")]


@app.command("list")
def list_late(
    table: Annotated[str | None, typer.Argument(help="Only this raw table.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was refused, or withdrawn meanwhile.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits: per table, day and arrival how many rows, how late or ahead, and what they amount to."""
    from platform_assets.engine.late.queue import late_queue

    with platform_to_look() as platform, without_numpy():
        if table is not None:
            table = platform.catalogue[table].name
        queue = [rows for rows in late_queue(platform) if table in (None, rows.table)]
    shown = [rows for rows in queue if everything or rows.state in ("waiting", "ahead")]
    if as_json:
        print_json([_as_json(rows) for rows in shown])
    elif shown:
        _print(shown)
    else:
        console.print("Nothing waits in the late queue.")


@app.command()
def approve(
    context: typer.Context,
    arrival: Arrival = None,
    table: OfTable = None,
    days: Days = None,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Take waiting rows into raw, as an arrival of their own; the next refresh mends the days they reach."""
    author, selection = decided_by(reason, by), _selection(arrival, table, days)
    from platform_assets.engine.late.approvals import approve as take

    with (
        opened_platform() as platform,
        telling(context, "late approve") as progress,
        session_on_demand(platform.settings, progress) as spark,
    ):
        done = take(platform, spark, selection, author, progress)
    if as_json:
        print_json([_approval_as_json(approval) for approval in done])
        return
    for approval in done:
        for entered in approval.arrivals:
            text = f"{counted(entered.taken, 'row')} of {entered.origin} entered {approval.table} as {entered.path}."
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        changed = approval.published
        console.print(f"{counted(len(changed), 'day')} of {approval.table} changed, {which(changed)}.")
    console.print("The next refresh mends what reads them.")


@app.command()
def refuse(
    arrival: Arrival = None,
    table: OfTable = None,
    days: Days = None,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Decide that waiting rows stay out; they are kept and listed with `late list --all`."""
    author, selection = decided_by(reason, by), _selection(arrival, table, days)
    from platform_assets.engine.late.queue import refuse as keep_out

    with opened_platform() as platform:
        done = keep_out(platform, selection, author)
    if as_json:
        print_json([_as_json(rows) for rows in done])
        return
    rows = sum(refused.rows for refused in done)
    console.print(f"{counted(rows, 'row')} of {counted(len({refused.day for refused in done}), 'day')} will stay out.")


def _selection(arrival: str | None, table: str | None, days: str | None) -> LateSelection:
    if arrival is not None and table is None and days is None:
        return LateSelection(arrival=arrival)
    if arrival is None and table is not None and days is not None:
        return LateSelection(table=table, days=parse_days(days))
    raise UsageError(
        "Say which rows: those of one arrival, or those of a table on some days.",
        "Name an arrival as `late list` shows it, or give --table raw.x and --days 2017-01-02..2017-01-05.",
    )


def _print(queue: Sequence[LateRows]) -> None:
    names = ("table", "day", "came", "arrival", "rows", "amounts", "state")
    grid = new_grid("The late queue", names, right=("came", "rows"), whole=("table", "day", "came", "arrival"))
    for rows in queue:
        state = f"{rows.state} by {rows.decided}" if rows.decided else rows.state
        state += f"; its day is protected: {rows.protected}" if rows.protected else ""
        amounts = "\n".join(f"sum of {name} {amount:,}" for name, amount in rows.amounts.items() if amount)
        grid.add_row(
            rows.table, str(rows.day), _came(rows), escape(rows.arrival), f"{rows.rows:,}", amounts, escape(state)
        )
    console.print(grid)
    counts = counts_of(queue)
    if count := counts.waiting:
        console.print(
            f"{counted(count, 'row', 'wait')}: late approve ARRIVAL --reason … --by …, or late refuse.", soft_wrap=True
        )
    if count := counts.ahead:
        console.print(f"{counted(count, 'row', 'wait')} till the day comes, unless somebody decides otherwise.")


def _came(rows: LateRows) -> str:
    """How far from its day it came."""
    return f"{counted(-rows.days_late, 'day')} ahead" if rows.is_ahead else f"{counted(rows.days_late, 'day')} late"


def _as_json(rows: LateRows) -> dict[str, Any]:
    return {**vars(rows), "amounts": dict(rows.amounts), "days_late": rows.days_late}


def _approval_as_json(done: Approval) -> dict[str, Any]:
    arrivals = [{"path": entered.path, "origin": entered.origin, "rows": entered.taken} for entered in done.arrivals]
    return {"table": done.table, "arrivals": arrivals, "days": sorted(done.published)}
