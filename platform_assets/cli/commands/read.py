"""`read` and `views`: rows of a released table, and a script that gives other tools every table at one release."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from platform_assets.cli.console import opened_platform, parse_days, without_numpy
from platform_assets.cli.options import AsJson, DaysOrDay, TableName
from platform_assets.cli.rows import AsFormat, GuardFormulas, Limit, OnlyColumns, Rows, column_names, print_rows
from platform_assets.cli.session import session_on_demand
from platform_assets.contracts.rules import SUPERSEDED
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import NeverPublishedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import statements, version_in, whole_snapshot
from platform_assets.operations.readers import readers_release
from platform_assets.progress import no_progress
from platform_assets.report import Report
from platform_assets.settings import load_settings


def read(
    table: TableName,
    days: DaysOrDay = None,
    columns: OnlyColumns = None,
    release: Annotated[str | None, typer.Option(help="Its number or the name of its pin; the current one.")] = None,
    limit: Limit = None,
    format: AsFormat = None,
    guard_formulas: GuardFormulas = False,
    as_json: AsJson = False,
) -> None:
    """Print rows of a table as readers see them, now or at a release, oldest days first.

    superseded.NAME are the rows of which silver.NAME has a newer version: Spark looks them up in raw.
    """
    settings = load_settings()
    chosen = None if days is None else parse_days(days, settings)
    lake = Lake.at(settings.lake)
    shown = readers_release(settings, release)
    if table.startswith(SUPERSEDED):
        from platform_assets.engine.step.inputs import staged_superseded

        with (
            opened_platform(settings) as platform,
            session_on_demand(settings, no_progress, brief=True) as spark,
            staged_superseded(platform, spark, table, chosen, shown) as folder,
        ):
            staged = table_snapshot(folder)
            there = {of: paths for of, paths in staged.by_day().items() if of is not None}
            head = {"table": table, "release": shown.number} if as_json else None
            rows = Rows(folder, staged.schema_string, there, column_names(columns))
            print_rows(table, rows, limit, format, head, guard=guard_formulas)
        return
    version_in(lake, table, shown, load_catalogue(settings).names)
    snapshot = whole_snapshot(lake, table, shown, chosen)
    files = {
        of: paths for of, paths in snapshot.by_day().items() if of is not None and (chosen is None or of in chosen)
    }
    title = f"{table}{f' on {days}' if days else ''}"
    head = {"table": table, "release": shown.number} if as_json else None
    rows = Rows(lake.table_path(table), snapshot.schema_string, files, column_names(columns))
    with without_numpy():
        print_rows(title, rows, limit, format, head, guard=guard_formulas)


def views(
    engine: Annotated[Literal["spark", "duckdb"], typer.Option(help="Whose SQL to write.")] = "duckdb",
    release: Annotated[
        str | None, typer.Option(help="Number, name of a pin, or publication; the current one by default.")
    ] = None,
) -> Report:
    """Print SQL that makes a view of every table at one release: silver.sales in DuckDB, silver_sales in Spark."""
    settings = load_settings()
    shown = readers_release(settings, release)
    if not shown.versions:
        raise NeverPublishedError("Nothing was published yet, so there is nothing to see.", "Run a refresh first.")
    made = list(statements(Lake.at(settings.lake), shown, engine))
    data = {"release": shown.number, "engine": engine, "statements": made}
    lines = "\n\n".join(f"{statement};" for statement in made).splitlines()
    return Report([f"-- Release {shown.number}, for {engine}. Written by platform-assets views.", "", *lines], data)
