"""`quarantine`: rows that were refused or broke a rule: looked at, replayed after a fix, or discarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from platform_assets.cli.console import opened_platform, parse_days, platform_to_look, without_numpy
from platform_assets.cli.options import DaysOrDay
from platform_assets.cli.session import computing
from platform_assets.engine.ingest.aside import aside, chosen
from platform_assets.engine.platform import Author
from platform_assets.operations.quarantine import discard as decide
from platform_assets.operations.quarantine import lines, replay_quarantined, shown
from platform_assets.planning.quarantine import AsideSelection, grouped
from platform_assets.report import Note, Part, Report, picked
from platform_assets.report import Table as Grid
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
) -> Report:
    """Show how many rows are set aside by table, day and class of error, and how often they were tried."""
    with platform_to_look() as platform, without_numpy():
        groups = grouped(aside(platform, _selection(table, days, rule), everything=everything))
    return Report([_table(groups)] if groups else ["Nothing is set aside."], groups)


@app.command("show")
def show_rows(
    table: Table,
    days: DaysOrDay = None,
    rule: Rule = None,
    arrival: FromArrival = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to show.")] = 20,
    everything: All = False,
) -> Report:
    """Show rows with file and line, why they were set aside, and their values, sensitive ones masked."""
    with platform_to_look() as platform, without_numpy():
        rows = chosen(platform, _selection(table, days, rule, arrival), everything=everything, payloads=True)
        at, found = lines(platform, rows[:limit]), [(row, *shown(platform, row)) for row in rows[:limit]]
    data, parts = [], list[Part]()
    for row, why, values in found:
        names = "table day error arrival rows number attempts discarded"
        data.append(picked(row, names, line=at.get(row), reason=why, values=values))
        where = f", line {at[row]}" if row in at else f", row {row.number}" if row.number else ""
        parts.append(Note("", f"{row.table} {row.day}", f"{row.arrival}{where}: {why}"))
        tried = counted(row.attempts, "attempt") + (f"; discarded by {row.discarded}" if row.discarded else "")
        fields = "; ".join(f"{name}: {value}" for name, value in values.items())
        parts.append(f"  {tried}" + (f"; {fields}" if fields else ""))
    if more := len(rows) - len(found):
        parts.append(f"and {counted(more, 'more row')}: --limit {len(rows)}")
    return Report(parts, data)


@app.command()
def replay(
    table: Table, author: Author, days: DaysOrDay = None, rule: Rule = None, arrival: FromArrival = None
) -> Report:
    """Try rows again after a fix of code, rule, contract or reference data; exit code 1 if some stay set aside.

    Rows that a raw table refused are read from their files and enter as an arrival of their own. Rows that broke a
    silver table's rule are in raw: their days are computed again.
    """
    from platform_assets.engine.ingest.replay import replay as read_again
    from platform_assets.engine.step.analysed import analysed

    selection, named = _selection(table, days, rule, arrival), arrival is not None
    why: dict[str, str] = {}
    before: dict[str, int] = {}
    with opened_platform() as platform, computing(platform.settings, "quarantine replay") as (spark, progress):
        tried = sum(row.rows for row in chosen(platform, selection, everything=named))
        if platform.catalogue[table].source:
            done = read_again(platform, analysed(platform, [table], spark), selection, author, progress)
            entered = [each.path for taken in done for each in taken.arrivals if each.taken or each.late]
            why = {each.path: each.reason for taken in done for each in taken.arrivals if each.reason}
            changed, how = {day for taken in done for day in taken.days}, "read once more from their files"
        else:
            steps = replay_quarantined(platform, spark, selection, author, progress).steps
            changed, entered = {day for step in steps if step.table == table for day in step.published}, []
            before = {step.table: len(step.published) for step in steps if step.table != table and step.published}
            how = f"judged once more, with {counted(len(changed), 'day')} computed again"
        left = aside(platform, selection, everything=named)
    stay = sum(row.rows for row in left)
    data = {"table": table, "tried": tried, "stay": stay, "arrivals": entered, "refused": why, "days": sorted(changed)}
    parts = [
        f"{counted(tried, 'row')} of {table} {how}; {stay:,} stay.",
        *(Note("green", "entered", path) for path in entered),
        *(Note("red", "refused", f"{path}: {because}") for path, because in why.items()),
        *(Note("", "computed before", f"{name}: {counted(days, 'day')}") for name, days in before.items()),
        *([_table(grouped(left))] if left else []),
        *(["The next refresh mends what reads them."] if changed else []),
    ]
    return Report(parts, data, bool(left))


@app.command()
def discard(
    table: Table, author: Author, days: DaysOrDay = None, rule: Rule = None, arrival: FromArrival = None
) -> Report:
    """Decide that rows are needed no more: they are kept, but neither listed, replayed nor warned of."""
    with opened_platform() as platform:
        groups = grouped(decide(platform, _selection(table, days, rule, arrival), author))
    rows = counted(sum(group["rows"] for group in groups), "row")
    return Report([f"{rows} of {table} discarded: `quarantine list --all` shows them."], groups)


def _selection(table: str | None, days: str | None, error: str | None, arrival: str | None = None) -> AsideSelection:
    return AsideSelection(table, None if days is None else parse_days(days), error, arrival)


def _table(groups: Iterable[Mapping[str, Any]]) -> Grid:
    names = ("table", "day", "error", "rows", "attempts", "files", "discarded")
    rows = [[str(group[name] or "") for name in names] for group in groups]
    return Grid("Set aside", names, rows, right=names[3:], whole=("table", "day"))
