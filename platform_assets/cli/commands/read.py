"""`read`: rows of a released table."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.console import parse_day
from platform_assets.cli.rows import Format, Limit, print_rows
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import version_in, whole_snapshot
from platform_assets.operations.readers import readers_release
from platform_assets.settings import load_settings


def read(
    table: Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")],
    day: Annotated[str | None, typer.Option(help="Only this day, YYYY-MM-DD.")] = None,
    release: Annotated[str | None, typer.Option(help="Its number or the name of its pin; the current one.")] = None,
    limit: Limit = None,
    format: Annotated[Format, typer.Option(help="table for people, csv or json lines for programs.")] = Format.table,
) -> None:
    """Print rows of a table as readers see them, now or at a release, oldest days first."""
    settings = load_settings()
    days = None if day is None else [parse_day(day, settings)]
    lake = Lake.at(settings.lake)
    shown = readers_release(settings, release)
    version_in(lake, table, shown, load_catalogue(settings).names)
    snapshot = whole_snapshot(lake, table, shown, days)
    files = {of: paths for of, paths in snapshot.by_day().items() if of is not None and (days is None or of in days)}
    title = f"{table}{f' on {day}' if day else ''}"
    print_rows(title, lake.table_path(table), snapshot.schema_string, files, limit, format)
