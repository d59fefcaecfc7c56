"""`late`: rows that came too late, or too far ahead, to be taken as they come; and what to do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform, parse_days, platform_to_look, without_numpy
from platform_assets.cli.options import Days
from platform_assets.cli.session import computing
from platform_assets.engine.late.queue import late_queue
from platform_assets.engine.late.queue import refuse as keep_out
from platform_assets.engine.platform import Author
from platform_assets.planning.late_queue import LateRows, LateSelection, counts_of
from platform_assets.planning.windows import which
from platform_assets.report import Part, Report, Table, picked
from platform_assets.words import counted

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
) -> Report:
    """Show what waits: per table, day and arrival how many rows, how late or ahead, and what they amount to."""
    with platform_to_look() as platform, without_numpy():
        if table is not None:
            table = platform.catalogue[table].name
        queue = [rows for rows in late_queue(platform) if table in (None, rows.table)]
    shown = [rows for rows in queue if everything or rows.state in ("waiting", "ahead")]
    data = [_json(rows) for rows in shown]
    return Report(_parts(shown) if shown else ["Nothing waits in the late queue."], data)


@app.command()
def approve(author: Author, arrival: Arrival = None, table: OfTable = None, days: Days = None) -> Report:
    """Take waiting rows into raw, as an arrival of their own; the next refresh mends the days they reach."""
    selection = _selection(arrival, table, days)
    from platform_assets.engine.late.approvals import approve as take

    with opened_platform() as platform, computing(platform.settings, "late approve") as (spark, progress):
        done = take(platform, spark, selection, author, progress)
    data, lines = [], []
    for approval in done:
        arrivals = [picked(entered, "path origin", rows=entered.taken) for entered in approval.arrivals]
        data.append({"table": approval.table, "arrivals": arrivals, "days": sorted(approval.published)})
        for entered in approval.arrivals:
            rows = f"{counted(entered.taken, 'row')} of {entered.origin}"
            lines.append(f"{rows} entered {approval.table} as {entered.path}.")
        changed = approval.published
        lines.append(f"{counted(len(changed), 'day')} of {approval.table} changed, {which(changed)}.")
    return Report([*lines, "The next refresh mends what reads them."], data)


@app.command()
def refuse(author: Author, arrival: Arrival = None, table: OfTable = None, days: Days = None) -> Report:
    """Decide that waiting rows stay out; they are kept and listed with `late list --all`."""
    selection = _selection(arrival, table, days)

    with opened_platform() as platform:
        done = keep_out(platform, selection, author)
    rows, on = sum(refused.rows for refused in done), len({refused.day for refused in done})
    stay = f"{counted(rows, 'row')} of {counted(on, 'day')} will stay out."
    return Report([stay], [_json(refused) for refused in done])


def _selection(arrival: str | None, table: str | None, days: str | None) -> LateSelection:
    if arrival is not None and table is None and days is None:
        return LateSelection(arrival=arrival)
    if arrival is None and table is not None and days is not None:
        return LateSelection(table=table, days=parse_days(days))
    raise UsageError(
        "Say which rows: those of one arrival, or those of a table on some days.",
        "Name an arrival as `late list` shows it, or give --table raw.x and --days 2017-01-02..2017-01-05.",
    )


def _parts(queue: Sequence[LateRows]) -> Iterator[Part]:
    rows = []
    for late in queue:
        state = f"{late.state} by {late.decided}" if late.decided else late.state
        state += f"; its day is protected: {late.protected}" if late.protected else ""
        amounts = tuple(f"sum of {name} {amount:,}" for name, amount in late.amounts.items() if amount)
        days = abs(late.days_late)
        came = f"{counted(days, 'day')} {'ahead' if late.is_ahead else 'late'}"
        rows.append((late.table, str(late.day), came, late.arrival, f"{late.rows:,}", amounts, state))
    names = ("table", "day", "came", "arrival", "rows", "amounts", "state")
    yield Table("The late queue", names, rows, ("came", "rows"), names[:4])
    counts = counts_of(queue)
    if count := counts.waiting:
        yield f"{counted(count, 'row', 'wait')}: late approve ARRIVAL --reason … --by …, or late refuse."
    if count := counts.ahead:
        yield f"{counted(count, 'row', 'wait')} till the day comes, unless somebody decides otherwise."


def _json(rows: LateRows) -> dict[str, Any]:
    return {**vars(rows), "days_late": rows.days_late}
