"""How rows look: a grid for people, CSV and JSON lines for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from platform_assets.cli.console import UsageError, print_parts
from platform_assets.contracts import DAY
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.report import Cell, Mark, Table
from platform_assets.words import counted

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
    """Hold rows of some days of a table, not read yet: the files of each day, as paths from its folder."""

    folder: Location
    schema_string: str
    files: Mapping[date, Collection[str]]
    only: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Return those that are wanted; else the day first, in every format, the others in the order of the schema."""
        known = [DAY, *(field["name"] for field in json.loads(self.schema_string)["fields"] if field["name"] != DAY)]
        for name in self.only:
            if name not in known:
                raise UsageError(f"The table has no column {name!r}.", f"Its columns are {', '.join(known)}.")
        return list(dict.fromkeys(self.only)) or known

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield oldest days first, file by file; making Arrow tables of them would import pandas, which takes long."""
        columns = self.columns
        none = dict.fromkeys(columns)  # what a file lacks that was written before the table got the column
        read = [name for name in self.only if name != DAY] or None
        for day in sorted(self.files):
            of_day = {DAY: day} if DAY in columns else {}
            for path in sorted(self.files[day]):
                for batch in row_batches(self.folder / path, _BATCH_ROWS, read):
                    yield from (none | row | of_day for row in batch.to_pylist())


def column_names(columns: str | None) -> tuple[str, ...]:
    """Return the columns that a person names with commas between."""
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
    """Print the first rows of some days, oldest days first; programs get all of them, or are told that they do not.

    Args:
        head: what one JSON document says before its rows, instead of a format.
        guard: whether no text of the CSV may be a formula to a spreadsheet; it is not as in the table then.
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
            cell = _guarded if guard else _text
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
    """Print it as it is read: there may be more rows than memory."""
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


def _guarded(value: Any) -> str:
    """Return a value as text that no spreadsheet computes; numbers stay numbers, also those below zero."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else _text(value)


def _text(value: Any) -> str:
    """Return a value as text: exact, nothing for null, times as ISO 8601 has them."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
