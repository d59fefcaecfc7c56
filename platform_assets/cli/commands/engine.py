"""`engine`: which tables Sail computes in place of Spark, and whether the two agree."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    opened_platform,
    parse_days,
    platform_to_look,
    print_json,
    say,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, Days, TableName
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.operations.verify import Verdict
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.engines import EnginesBeside, EngineVerified

app = typer.Typer(help="Which tables Sail computes in place of Spark, and whether the two agree.", no_args_is_help=True)

_VERDICTS: tuple[Verdict, ...] = ("equal", "different", "not verifiable")
_DRAWN = 5
"""Days that are compared besides the newest."""


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show by which engine each table is computed, and why."""
    from platform_assets.engine.admissions import admissions, engine_of, why_not_admitted, why_spark

    with platform_to_look() as platform:
        known = admissions(platform)
        shown = [
            {
                "table": contract.name,
                "engine": engine_of(platform, contract),
                "why": why_spark(platform, contract),
                "admitted": not (why_not := why_not_admitted(platform, contract.name)),
                "not_admitted": why_not,
                "days": len(known[contract.name].days) if contract.name in known else 0,
            }
            for contract in platform.catalogue
            if contract.inputs
        ]
    if as_json:
        print_json({"tables": shown})
        return
    grid = new_grid("Engines", ("table", "engine", "days compared", "why"), right=("days compared",), whole=("table",))
    for row in shown:
        why = row["why"] or "admitted"
        if row["why"] and row["admitted"]:
            why = f"{why}; admitted to Sail"
        grid.add_row(str(row["table"]), str(row["engine"]), f"{row['days']:,}", str(why))
    console.print(grid)


@app.command()
def verify(
    context: typer.Context,
    table: TableName,
    days: Days = None,
    sample: Annotated[
        int | None, typer.Option(min=0, help=f"Days to draw besides the newest; {_DRAWN} by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What to draw by; another one every day by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute published days on Spark and on Sail; the table is admitted to Sail if all come out as published.

    That holds for this code version and contract. Exit code 1 if the table is not admitted.
    """
    from platform_assets.engine.platform import Author
    from platform_assets.lakehouse.staging_folders import private_folder
    from platform_assets.operations.engines import verify_engine
    from platform_assets.planning.selection import Draw

    if days is not None and (sample is not None or seed is not None):
        raise UsageError("Days are either named or drawn.", "Leave out --days, or --sample and --seed.")
    with opened_platform() as platform:
        named = None if days is None else parse_days(days, platform.settings)
        drawn_by = platform.settings.current_day().toordinal() if seed is None else seed
        draw = None if named is not None else Draw(_DRAWN if sample is None else sample, drawn_by)
        author = Author(run=f"engine verify {table}", why="engine verify", who=getpass.getuser())
        with (
            private_folder(platform.lake) as folder,
            telling(context, "verify") as progress,
            session_on_demand(platform.settings, progress) as spark,
        ):
            found = verify_engine(platform, spark, table, named, draw, folder, author, progress)
    if as_json:
        print_json(_verified_json(found))
    else:
        _print_verified(found)
    if found.admission.refused:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def compare(
    context: typer.Context,
    table: TableName,
    days: Days = None,
    examples: Annotated[int, typer.Option(min=0, max=1000, help="Keys to show of each way to differ.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Compute days on both engines and show what differs by column and key; nothing of it is published.

    A table that differs is taken off Sail. Exit code 1 if anything differs.
    """
    from platform_assets.operations.engines import compare_engines

    if days is None:
        raise UsageError("Say which days are to be computed.", "Add --days 2017-03-31, or A..B.")
    with opened_platform() as platform:
        wanted = parse_days(days, platform.settings)
        with telling(context, "comparing") as progress, session_on_demand(platform.settings, progress) as spark:
            found = compare_engines(platform, spark, table, wanted, examples, progress)
    if as_json:
        print_json(_beside_json(found))
    else:
        _print_beside(found)
    if found.differing:
        raise typer.Exit(EXIT_LOOK)


def _print_verified(found: EngineVerified) -> None:
    for engine, tables in found.by_engine.items():
        for of_table in tables:
            counts = ", ".join(f"{len(of_table.of(verdict)):,} {verdict}" for verdict in _VERDICTS)
            say(engine.capitalize(), f"{of_table.table}: {counts}")
            for day in of_table.of("different"):
                say("[red]different[/]", f"{of_table.table} {day.day}: {day.reason}")
                for example in day.examples:
                    say("   ", example)
            for day in of_table.of("not verifiable")[:1]:
                say("[yellow]not verifiable[/]", f"{of_table.table} {day.day}: {day.reason}")
    if why := found.admission.refused:
        say("[yellow]not admitted[/]", f"{found.table} is computed by Spark: {why}.")
    else:
        days = counted(len(found.admission.days), "day")
        say(
            "[green]admitted[/]",
            f"{found.table}: {days}, {counted(found.admission.rows, 'row')}, alike on both engines.",
        )


def _verified_json(found: EngineVerified) -> dict[str, Any]:
    return {
        "table": found.table,
        "admitted": not found.admission.refused,
        "why_not": found.admission.refused,
        "days": list(found.admission.days),
        "rows": found.admission.rows,
        "engines": {
            engine: [
                {"table": one.table} | {verdict: [day.day for day in one.of(verdict)] for verdict in _VERDICTS}
                for one in tables
            ]
            for engine, tables in found.by_engine.items()
        },
    }


def _print_beside(found: EnginesBeside) -> None:
    from platform_assets.cli.commands.compare_view import print_columns

    days = counted(len(found.days), "day")
    if not found.differing:
        console.print(f"Before is Spark, after is Sail: {days} of {found.table} alike.", highlight=False)
        return
    differ = f"{len(found.differing):,} of {days} of {found.table} differ"
    console.print(f"Before is Spark, after is Sail: {differ}.", highlight=False)
    print_columns(found.table, found.columns, found.examples)
    if found.quarantines:
        days = counted(len(found.quarantines), "day")
        say("quarantine", f"rows that break a rule are kept otherwise on {days}, first {found.quarantines[0]}.")
    if found.was_admitted:
        say("[yellow]taken off[/]", f"{found.table} is computed by Spark from now on.")


def _beside_json(found: EnginesBeside) -> dict[str, Any]:
    from platform_assets.cli.commands.stage_view import comparison_json

    return {
        "table": found.table,
        "equal": not found.differing,
        "differing": list(found.differing),
        "quarantines": list(found.quarantines),
        "days": [comparison_json(day) for day in found.days],
        "columns": [asdict(column) for column in found.columns],
        "examples": [asdict(example) for example in found.examples],
        "taken_off": found.was_admitted,
    }
