"""`read`: rows of a table as a grid, CSV or JSON lines, or SQL that makes a view of every table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from platform_assets.cli.console import (
    UsageError,
    opened_platform,
    parse_days,
    platform_to_look,
    print_parts,
    selected_tables,
    without_numpy,
)
from platform_assets.cli.options import AsJson, DaysOrDay, call_with
from platform_assets.cli.session import session_on_demand
from platform_assets.contracts import DAY
from platform_assets.contracts.rules import SUPERSEDED
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import NeverPublishedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import statements, version_in, whole_snapshot
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.operations.readers import readers_release
from platform_assets.planning.selection import is_selector
from platform_assets.progress import no_progress
from platform_assets.report import Cell, Mark, Report, Table
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted


def read(
    table: Annotated[str | None, typer.Argument(help="<layer>.<table>; required, except with --views.")] = None,
    days: DaysOrDay = None,
    columns: OnlyColumns = None,
    release: Annotated[
        str | None, typer.Option(help="Its number, the name of its pin or a publication; the current one.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="As this stage shows it.")] = None,
    limit: Limit = None,
    format: AsFormat = None,
    guard_formulas: GuardFormulas = False,
    views: Annotated[
        Literal["spark", "duckdb"] | None, typer.Option("--views", help="Print SQL instead: a view of every table.")
    ] = None,
    as_json: AsJson = False,
) -> Report | None:
    """Print rows of a table as readers see them, now, at a release or in a stage, oldest days first.

    superseded.NAME has the rows that newer versions in silver.NAME replaced; Spark reads them from raw.
    """
    if views:
        given = {"table": table, "days": days, "columns": columns, "stage": stage, "limit": limit, "format": format}
        return call_with("read --views", _views, {**given, "engine": views, "release": release})
    if table is None:
        raise UsageError("Missing argument TABLE.", "Name one, as gold.daily_sales; `status` lists them.")
    if stage is not None and release is not None:
        raise UsageError("A stage is based on the release at which it was opened.", "Leave out --release.")
    table = _one_table(table) if is_selector(table) else table
    settings = load_settings()
    chosen = None if days is None else parse_days(days, settings)
    title = f"{table} in stage {stage}" if stage else f"{table}{f' on {days}' if days else ''}"
    with _opened_rows(settings, table, chosen, stage, release) as (folder, schema, files, number):
        head = {"table": table} | ({"stage": stage} if stage else {}) | {"release": number} if as_json else None
        rows = Rows(folder, schema, files, column_names(columns))
        print_rows(title, rows, limit, format, head, guard=guard_formulas)
    return None


def _one_table(selector: str) -> str:
    with platform_to_look() as platform:
        chosen = selected_tables(platform, [selector])
    if len(chosen) > 1:
        raise UsageError(f"{selector!r} selects {', '.join(sorted(chosen))}.", "Name one of them.")
    return next(iter(chosen))


@contextmanager
def _opened_rows(
    settings: Settings, table: str, days: Collection[date] | None, stage: str | None, release: str | None
) -> Iterator[tuple[Location, str, Mapping[date, Collection[str]], int]]:
    """Locate the rows of a table at a release, or in a stage: its own days, else the release's.

    Returns:
        The folder, the schema, the files of each day, and the number of the release.
    """
    if stage is not None:
        from platform_assets.operations.stages.store import opened_stage, stage_basis

        with opened_platform(settings) as platform:
            snapshot = stage_basis(platform, opened_stage(platform, stage))
            if table not in snapshot.staged.tables:
                version_in(platform.lake, table, snapshot.release, platform.catalogue.names)
            files: dict[date | None, Collection[str]] = {
                day: [file.path for file in some] for day, some in snapshot.files(table).items()
            }
            folder, schema = platform.lake.table_path(table), snapshot.schema_string(table)
        yield folder, schema, _chosen(files, days), snapshot.release.number
        return
    shown = readers_release(settings, release)
    if table.startswith(SUPERSEDED):
        from platform_assets.engine.step.inputs import staged_superseded

        with (
            opened_platform(settings) as platform,
            session_on_demand(settings, no_progress, brief=True) as spark,
            staged_superseded(platform, spark, table, days, shown) as folder,
        ):
            staged = table_snapshot(folder)
            yield folder, staged.schema_string, _chosen(staged.by_day(), None), shown.number
        return
    lake = Lake.at(settings.lake)
    version_in(lake, table, shown, load_catalogue(settings).names)
    whole = whole_snapshot(lake, table, shown, days)
    with without_numpy():
        yield lake.table_path(table), whole.schema_string, _chosen(whole.by_day(), days), shown.number


def _chosen(files: Mapping[date | None, Collection[str]], days: Collection[date] | None) -> dict[date, Collection[str]]:
    return {day: paths for day, paths in files.items() if day is not None and (days is None or day in days)}


def _views(engine: Literal["spark", "duckdb"], release: str | None = None) -> Report:
    """Print SQL that makes a view of every table at one release: silver.sales in DuckDB, silver_sales in Spark."""
    settings = load_settings()
    shown = readers_release(settings, release)
    if not shown.versions:
        raise NeverPublishedError("Nothing was published yet, so there is nothing to see.", "Run a refresh first.")
    made = list(statements(Lake.at(settings.lake), shown, engine))
    data = {"release": shown.number, "engine": engine, "statements": made}
    lines = "\n\n".join(f"{statement};" for statement in made).splitlines()
    return Report(
        [f"-- Release {shown.number}, for {engine}. Written by platform-assets read --views.", "", *lines], data
    )


_BATCH_ROWS = 1000
_SHOWN = 20


Format = Literal["table", "csv", "json"]
AsFormat = Annotated[
    Format | None,
    typer.Option(help="table for people, the default; csv or json lines for programs, --json for one document."),
]
OnlyColumns = Annotated[
    str | None, typer.Option("--columns", metavar="COLUMN,…", help="Only these, in this order; all by default.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help=f"Most rows to print; {_SHOWN} in a table, all of them as csv or json.")
]


GuardFormulas = Annotated[
    bool,
    typer.Option("--guard-formulas", help="With csv, for a spreadsheet: text that would be a formula there gets a '."),
]
_NULL = Mark("null", "dim")
_NUMBER = int | float | Decimal | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Rows:
    """Rows of some days of a table, not read yet: the files of each day, relative to its folder."""

    folder: Location
    schema_string: str
    files: Mapping[date, Collection[str]]
    only: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Return the requested columns; by default the day first, the others in the order of the schema."""
        known = [DAY, *(field["name"] for field in json.loads(self.schema_string)["fields"] if field["name"] != DAY)]
        for name in self.only:
            if name not in known:
                raise UsageError(f"The table has no column {name!r}.", f"Its columns are {', '.join(known)}.")
        return list(dict.fromkeys(self.only)) or known

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield rows, oldest days first, file by file; Arrow tables of them would import pandas, which is slow."""
        columns = self.columns
        none = dict.fromkeys(columns)  # what a file lacks that was written before the table got the column
        read = [name for name in self.only if name != DAY] or None
        for day in sorted(self.files):
            of_day = {DAY: day} if DAY in columns else {}
            for path in sorted(self.files[day]):
                for batch in row_batches(self.folder / path, _BATCH_ROWS, read):
                    yield from (none | row | of_day for row in batch.to_pylist())


def column_names(columns: str | None) -> tuple[str, ...]:
    """Return the columns of a comma-separated list."""
    return tuple(name for part in (columns or "").split(",") if (name := part.strip()))


def print_rows(
    title: str,
    shown: Rows,
    limit: int | None,
    format: Format | None,
    head: Mapping[str, Any] | None = None,
    *,
    guard: bool = False,
) -> None:
    """Print the first rows of some days, oldest days first. Programs get all rows, or a note that some are missing.

    Args:
        head: beginning of one JSON document that contains the rows; empty for a format without one.
        guard: whether CSV text that a spreadsheet would take for a formula is changed.
    """
    if guard and (head is not None or format != "csv"):
        raise UsageError("--guard-formulas is for spreadsheets, which read CSV.", "Add --format csv, or leave it out.")
    if head is not None and format is not None:
        raise UsageError("--json prints one document, and --format something else.", "Leave out one of them.")
    columns, rows = shown.columns, iter(shown)
    if head is not None:
        _print_document({**head, "columns": columns}, rows, limit)
        return
    match format or "table":
        case "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            cell = _guarded_text if guard else _text
            writer.writerows([cell(row[name]) for name in columns] for row in islice(rows, limit))
        case "json":
            for row in islice(rows, limit):
                print(json.dumps({name: row[name] for name in columns}, default=_text, ensure_ascii=False))
        case "table":
            limit = limit or _SHOWN
            first = list(islice(rows, limit))
            more = next(rows, None) is not None
            said = f"the first {counted(limit, 'row')}; more with --limit" if more else counted(len(first), "row")
            rights = [name for name in columns if all(isinstance(row[name], _NUMBER) for row in first)]
            cells: list[list[Cell]] = [
                [_NULL if row[of] is None else _text(row[of]) for of in columns] for row in first
            ]
            print_parts([Table(title, columns, cells, right=rights, whole=(DAY,)), said])
            return
    if next(rows, None) is not None:
        _tell_that_there_are_more(limit)


def _print_document(head: Mapping[str, Any], rows: Iterator[dict[str, Any]], limit: int | None) -> None:
    """Print a JSON document while reading: there may be more rows than memory."""
    print(json.dumps(head, default=_text, ensure_ascii=False)[:-1] + ', "rows": [', end="")
    comma = ""
    for row in islice(rows, limit):
        print(comma + "\n" + json.dumps(row, default=_text, ensure_ascii=False), end="")
        comma = ","
    is_complete = next(rows, None) is None
    print(f'\n], "is_complete": {json.dumps(is_complete)}}}')
    if not is_complete:
        _tell_that_there_are_more(limit)


def _tell_that_there_are_more(limit: int | None) -> None:
    print(f"Only the first {counted(limit or 0, 'row')}: leave out --limit for all of them.", file=sys.stderr)


def _guarded_text(value: Any) -> str:
    """Return a value as text that no spreadsheet evaluates; numbers stay numbers, also negative ones."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else _text(value)


def _text(value: Any) -> str:
    """Return a value as exact text: nothing for null, times as in ISO 8601."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
