"""`read`: rows of a released table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from platform_assets.cli.console import console, parse_day
from platform_assets.contracts import DAY
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.pins import readers_release
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.log import Snapshot
from platform_assets.lakehouse.read import version_in, whole_snapshot
from platform_assets.settings import load_settings

_BATCH_ROWS = 1000


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"


def read(
    table: Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")],
    day: Annotated[str | None, typer.Option(help="Only this day, YYYY-MM-DD.")] = None,
    release: Annotated[str | None, typer.Option(help="Its number or the name of its pin; the current one.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to print.")] = 20,
    format: Annotated[Format, typer.Option(help="table for people, csv or json lines for programs.")] = Format.table,
) -> None:
    """Print rows of a table as readers see them, now or at a release, oldest days first."""
    settings = load_settings()
    days = [parse_day(day, settings)] if day else None
    lake = Lake(settings.lake)
    shown = readers_release(settings, release)
    version_in(lake, table, shown, load_catalogue(settings).names)
    found = whole_snapshot(lake, table, shown, days)
    columns = [field["name"] for field in json.loads(found.schema_string)["fields"]]
    rows = list(islice(_rows(lake, table, found, columns, days), limit))
    match format:
        case Format.csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_text(row[name]) for name in columns] for row in rows)
        case Format.json:
            for row in rows:
                print(json.dumps({name: row[name] for name in columns}, default=_text, ensure_ascii=False))
        case Format.table:
            console.print(_grid(f"{table}{f' on {day}' if day else ''}", columns, rows))
            console.print(_caption(len(rows), limit), style="italic")


def _grid(title: str, columns: list[str], rows: list[dict[str, Any]]) -> Table:
    """The day first, and whole; a table too wide for the screen folds its other values."""
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    ordered = [DAY, *(name for name in columns if name != DAY)]
    for name in ordered:
        number = all(isinstance(row[name], int | float | Decimal | None) for row in rows)
        grid.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=name == DAY)
    for row in rows:
        grid.add_row(*(escape(_text(row[name])) for name in ordered))
    return grid


def _rows(
    lake: Lake, table: str, found: Snapshot, columns: Sequence[str], days: Collection[date] | None
) -> Iterator[dict[str, Any]]:
    """Rows file by file; making Arrow tables of them would import pandas, which takes longer than all the rest."""
    import pyarrow.parquet as pq  # which no other command needs

    none = dict.fromkeys(columns)  # what a file lacks that was written before the table got the column
    live = {day: files for day, files in found.by_day().items() if day is not None and (days is None or day in days)}
    for day in sorted(live):
        for path in sorted(live[day]):
            for batch in pq.ParquetFile(lake.table_path(table) / path).iter_batches(_BATCH_ROWS):
                yield from (none | row | {DAY: day} for row in batch.to_pylist())


def _text(value: Any) -> str:
    """A value as text: exact, nothing for null, times as ISO 8601 has them."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _caption(rows: int, limit: int) -> str:
    return f"the first {limit} rows; more with --limit" if rows == limit else f"{rows} rows"
