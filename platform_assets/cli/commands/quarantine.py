"""`quarantine`: rows that were refused or broke a rule: looked at, replayed after a fix, or discarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    console,
    escape,
    opened_platform,
    parse_days,
    platform_to_look,
    print_json,
    say,
    without_numpy,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, DaysOrDay, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.planning.quarantine import AsideSelection, grouped
from platform_assets.words import counted

app = typer.Typer(
    help="Rows that were refused or broke a rule: show them, replay them after a fix, or discard them with a reason.",
    no_args_is_help=True,
)

Table = Annotated[str, typer.Argument(help="A raw table, which refuses rows, or a silver table, whose rules do.")]
Rule = Annotated[str | None, typer.Option("--rule", help="Only this class of error, as `list` shows it.")]
FromArrival = Annotated[str | None, typer.Option("--arrival", help="Only what this file brought.")]
All = Annotated[bool, typer.Option("--all", help="Also what was discarded.")]


@app.command("list")
def list_aside(
    table: Annotated[str | None, typer.Argument(help="Only this raw or silver table.")] = None,
    days: DaysOrDay = None,
    rule: Rule = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Show how many rows are set aside by table, day and class of error, and how often they were tried."""
    from platform_assets.engine.ingest.aside import aside

    with platform_to_look() as platform, without_numpy():
        groups = grouped(aside(platform, _selection(table, days, rule), everything=everything))
    if as_json:
        print_json(groups)
    elif groups:
        _print(groups)
    else:
        console.print("Nothing is set aside.")


@app.command()
def show(
    table: Table,
    days: DaysOrDay = None,
    rule: Rule = None,
    arrival: FromArrival = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to show.")] = 20,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Show rows with file and line, why they were set aside, and their values, sensitive ones masked."""
    from platform_assets.engine.ingest.aside import chosen
    from platform_assets.operations.quarantine import lines, shown

    with platform_to_look() as platform, without_numpy():
        rows = chosen(platform, _selection(table, days, rule, arrival), everything=everything, payloads=True)
        at, found = lines(platform, rows[:limit]), [(row, *shown(platform, row)) for row in rows[:limit]]
    if as_json:
        names = ("table", "day", "error", "arrival", "rows", "number", "attempts", "discarded")
        print_json(
            [
                {name: getattr(row, name) for name in names} | {"line": at.get(row), "reason": why, "values": values}
                for row, why, values in found
            ]
        )
        return
    for row, why, values in found:
        where = f", line {at[row]}" if row in at else f", row {row.number}" if row.number else ""
        say(f"{row.table} {row.day}", f"{row.arrival}{where}: {why}")
        tried = counted(row.attempts, "attempt") + (f"; discarded by {row.discarded}" if row.discarded else "")
        fields = "; ".join(f"{name}: {value}" for name, value in values.items())
        console.print(f"  {escape(tried)}" + (f"; {escape(fields)}" if fields else ""), highlight=False, soft_wrap=True)
    if more := len(rows) - len(found):
        console.print(f"and {counted(more, 'more row')}: --limit {len(rows)}")


@app.command()
def replay(
    context: typer.Context,
    table: Table,
    days: DaysOrDay = None,
    rule: Rule = None,
    arrival: FromArrival = None,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Try rows again after a fix of code, rule, contract or reference data; exit code 1 if some stay set aside.

    Rows that a raw table refused are read from their files and enter as an arrival of their own. Rows that broke a
    silver table's rule are in raw: their days are computed again.
    """
    author, selection = decided_by(reason, by), _selection(table, days, rule, arrival)
    from platform_assets.engine.ingest.aside import aside, chosen
    from platform_assets.engine.ingest.replay import replay as read_again
    from platform_assets.engine.step.analysed import analysed
    from platform_assets.operations.quarantine import replay_quarantined

    why: dict[str, str] = {}
    with (
        opened_platform() as platform,
        telling(context, "quarantine replay") as progress,
        session_on_demand(platform.settings, progress) as spark,
    ):
        named = arrival is not None
        tried = sum(row.rows for row in chosen(platform, selection, everything=named))
        if platform.catalogue[table].source:
            done = read_again(platform, analysed(platform, [table], spark), selection, author, progress)
            entered = [each.path for taken in done for each in taken.arrivals if each.taken or each.late]
            why = {each.path: each.reason for taken in done for each in taken.arrivals if each.reason}
            changed, how = {day for taken in done for day in taken.days}, "read once more from their files"
        else:
            steps = replay_quarantined(platform, spark, selection, author, progress).steps
            changed, entered = {day for step in steps if step.table == table for day in step.published}, []
            how = f"judged once more, with {counted(len(changed), 'day')} computed again"
        left = aside(platform, selection, everything=named)
    stay = sum(row.rows for row in left)
    if as_json:
        out = {"table": table, "tried": tried, "stay": stay, "arrivals": entered, "refused": why}
        print_json(out | {"days": sorted(changed)})
    else:
        console.print(f"{counted(tried, 'row')} of {table} {how}; {stay:,} stay.", soft_wrap=True)
        for path in entered:
            say("[green]entered[/]", path)
        for path, because in why.items():
            say("[red]refused[/]", f"{path}: {because}")
        if left:
            _print(grouped(left))
        if changed:
            console.print("The next refresh mends what reads them.")
    if left:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def discard(
    table: Table,
    days: DaysOrDay = None,
    rule: Rule = None,
    arrival: FromArrival = None,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Decide that rows are needed no more: they are kept, but neither listed, replayed nor warned of."""
    author, selection = decided_by(reason, by), _selection(table, days, rule, arrival)
    from platform_assets.operations.quarantine import discard as decide

    with opened_platform() as platform:
        groups = grouped(decide(platform, selection, author))
    if as_json:
        print_json(groups)
        return
    rows = counted(sum(group["rows"] for group in groups), "row")
    console.print(f"{rows} of {table} discarded: `quarantine list --all` shows them.", soft_wrap=True)


def _selection(table: str | None, days: str | None, error: str | None, arrival: str | None = None) -> AsideSelection:
    return AsideSelection(table, None if days is None else parse_days(days), error, arrival)


def _print(groups: Iterable[Mapping[str, Any]]) -> None:
    names = ("table", "day", "error", "rows", "attempts", "files", "discarded")
    grid = new_grid("Set aside", names, right=names[3:], whole=("table", "day"))
    for group in groups:
        grid.add_row(*(escape(str(group[name] or "")) for name in names))
    console.print(grid)
