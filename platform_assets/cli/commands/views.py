"""`views`: a script that gives other tools every table at one release, by name."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from platform_assets.lakehouse.errors import NeverPublishedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.sql_views import statements
from platform_assets.operations.readers import readers_release
from platform_assets.report import Report
from platform_assets.settings import load_settings


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
