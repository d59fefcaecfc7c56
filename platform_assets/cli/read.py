"""`read`: rows of a released table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from platform_assets.cli.console import console, parse_day
from platform_assets.contracts import DAY
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.read import dataset, version_in
from platform_assets.lakehouse.releases import current_release
from platform_assets.settings import load_settings


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"


def read(
    table: Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")],
    day: Annotated[str | None, typer.Option(help="Only this day, YYYY-MM-DD.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to print.")] = 20,
    format: Annotated[Format, typer.Option(help="table for people, csv or json lines for programs.")] = Format.table,
) -> None:
    """Print rows of a table as readers see them now."""
    settings = load_settings()
    days = [parse_day(day, settings)] if day else None
    lake = Lake(settings.lake)
    release = current_release(lake)
    version_in(lake, table, release, load_catalogue(settings).names)
    rows = dataset(lake, table, days, release).scanner(use_threads=False).head(limit)
    match format:
        case Format.csv:
            import pyarrow.csv as pa_csv

            pa_csv.write_csv(rows, sys.stdout.buffer)
        case Format.json:
            import polars as pl

            frame = pl.from_arrow(rows)
            assert isinstance(frame, pl.DataFrame)
            sys.stdout.write(frame.write_ndjson() or "")
        case Format.table:
            grid = Table(title=f"{table}{f' on {day}' if day else ''}", caption=_caption(rows.num_rows, limit))
            for name in rows.column_names:
                grid.add_column(name, justify="left" if name == DAY else "right", overflow="fold")
            for row in rows.to_pylist():
                grid.add_row(*("" if value is None else escape(str(value)) for value in row.values()))
            console.print(grid)


def _caption(rows: int, limit: int) -> str:
    return f"the first {limit} rows; more with --limit" if rows == limit else f"{rows} rows"
