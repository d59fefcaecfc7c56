"""`engine`: which tables Sail computes in place of Spark, and whether the two agree."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.compare_view import columns_parts, comparison_json
from platform_assets.cli.console import UsageError, opened_platform, parse_days, platform_to_look
from platform_assets.cli.options import Days, TableName, drawn
from platform_assets.cli.session import computing
from platform_assets.engine.admissions import admissions, engine_of, why_not_admitted, why_spark
from platform_assets.engine.platform import Author
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.engines import EnginesBeside, EngineVerified
    from platform_assets.operations.verify import Verdict

app = typer.Typer(help="Which tables Sail computes in place of Spark, and whether the two agree.", no_args_is_help=True)

_VERDICTS: tuple[Verdict, ...] = ("equal", "different", "not verifiable")
_DRAWN = 5


@app.command("list")
def list_() -> Report:
    """Show by which engine each table is computed, and why."""
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
    rows = []
    for row in shown:
        admitted = "; admitted to Sail" if row["why"] and row["admitted"] else ""
        why = f"{row['why'] or 'admitted'}{admitted}"
        rows.append((str(row["table"]), str(row["engine"]), f"{row['days']:,}", why))
    names = ("table", "engine", "days compared", "why")
    return Report([Table("Engines", names, rows, ("days compared",), ("table",))], {"tables": shown})


@app.command()
def verify(
    table: TableName,
    days: Days = None,
    sample: Annotated[
        int | None, typer.Option(min=0, help=f"Days to draw besides the newest; {_DRAWN} by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What to draw by; another one every day by default.")] = None,
) -> Report:
    """Compute published days on Spark and on Sail; the table is admitted to Sail if all come out as published.

    That holds for this code version and contract. Exit code 1 if the table is not admitted.
    """
    from platform_assets.lakehouse.staging_folders import private_folder
    from platform_assets.operations.engines import verify_engine

    draw = drawn(days, sample, seed, _DRAWN, load_settings())
    with opened_platform() as platform:
        named = None if days is None else parse_days(days, platform.settings)
        author = Author(run=f"engine verify {table}", why="engine verify", who=getpass.getuser())
        with private_folder(platform.lake) as folder, computing(platform.settings, "verify") as (spark, progress):
            found = verify_engine(platform, spark, table, named, draw, folder, author, progress)
    admission = found.admission
    data = picked(found, "table", admitted=not admission.refused, why_not=admission.refused)
    data |= picked(admission, "days rows") | {
        "engines": {
            engine: [
                {"table": one.table} | {verdict: [day.day for day in one.of(verdict)] for verdict in _VERDICTS}
                for one in tables
            ]
            for engine, tables in found.by_engine.items()
        }
    }
    return Report(_verified_parts(found), data, bool(admission.refused))


@app.command()
def compare(
    table: TableName,
    days: Days = None,
    examples: Annotated[int, typer.Option(min=0, max=1000, help="Keys to show of each way to differ.")] = 5,
) -> Report:
    """Compute days on both engines and show what differs by column and key; nothing of it is published.

    A table that differs is taken off Sail. Exit code 1 if anything differs.
    """
    from platform_assets.operations.engines import compare_engines

    if days is None:
        raise UsageError("Say which days are to be computed.", "Add --days 2017-03-31, or A..B.")
    with opened_platform() as platform:
        wanted = parse_days(days, platform.settings)
        with computing(platform.settings, "comparing") as (spark, progress):
            found = compare_engines(platform, spark, table, wanted, examples, progress)
    data = picked(
        found,
        "table differing quarantines columns examples",
        equal=not found.differing,
        days=[comparison_json(day) for day in found.days],
        taken_off=found.was_admitted,
    )
    return Report(_beside_parts(found), data, bool(found.differing))


def _verified_parts(found: EngineVerified) -> Iterator[Part]:
    for engine, tables in found.by_engine.items():
        for of_table in tables:
            counts = ", ".join(f"{len(of_table.of(verdict)):,} {verdict}" for verdict in _VERDICTS)
            yield Note("", engine.capitalize(), f"{of_table.table}: {counts}")
            for day in of_table.of("different"):
                yield Note("red", "different", f"{of_table.table} {day.day}: {day.reason}")
                yield from (f"    {example}" for example in day.examples)
            for day in of_table.of("not verifiable")[:1]:
                yield Note("yellow", "not verifiable", f"{of_table.table} {day.day}: {day.reason}")
    if why := found.admission.refused:
        yield Note("yellow", "not admitted", f"{found.table} is computed by Spark: {why}.")
    else:
        days = counted(len(found.admission.days), "day")
        rows = counted(found.admission.rows, "row")
        yield Note("green", "admitted", f"{found.table}: {days}, {rows}, alike on both engines.")


def _beside_parts(found: EnginesBeside) -> Iterator[Part]:
    days = counted(len(found.days), "day")
    if not found.differing:
        yield f"Before is Spark, after is Sail: {days} of {found.table} alike."
        return
    yield f"Before is Spark, after is Sail: {len(found.differing):,} of {days} of {found.table} differ."
    yield from columns_parts(found.table, found.columns, found.examples)
    if found.quarantines:
        days = counted(len(found.quarantines), "day")
        kept = f"rows that break a rule are kept otherwise on {days}, first {found.quarantines[0]}."
        yield Note("", "quarantine", kept)
    if found.was_admitted:
        yield Note("yellow", "taken off", f"{found.table} is computed by Spark from now on.")
