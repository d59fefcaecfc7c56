"""How rows look: a grid for people, CSV and JSON lines for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from platform_assets.cli.console import UsageError, print_parts
from platform_assets.contracts import DAY
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.report import Cell, Mark, Table
from platform_assets.words import counted

_BATCH_ROWS = 1000
_SHOWN = 20
"""Rows of a table that is printed for people."""


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"


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
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Rows:
    """Rows of some days of a table, not read yet.

    Args:
        folder: of the table.
        schema_string: Delta schema of the table.
        files: of each day, as paths from the folder.
        only: names of the columns that are wanted, in their order; all by default.
    """

    folder: Location
    schema_string: str
    files: Mapping[date, Collection[str]]
    only: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Those that are wanted; else the day first, in every format, the others in the order of the schema.

        Raises:
            UsageError: the table has not all of them.
        """
        known = [DAY, *(field["name"] for field in json.loads(self.schema_string)["fields"] if field["name"] != DAY)]
        for name in self.only:
            if name not in known:
                raise UsageError(f"The table has no column {name!r}.", f"Its columns are {', '.join(known)}.")
        return list(dict.fromkeys(self.only)) or known

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Oldest days first, file by file; making Arrow tables of them would import pandas, which takes long."""
        columns = self.columns
        none = dict.fromkeys(columns)  # what a file lacks that was written before the table got the column
        read = [name for name in self.only if name != DAY] or None
        for day in sorted(self.files):
            of_day = {DAY: day} if DAY in columns else {}
            for path in sorted(self.files[day]):
                for batch in row_batches(self.folder / path, _BATCH_ROWS, read):
                    yield from (none | row | of_day for row in batch.to_pylist())


def named(columns: str | None) -> tuple[str, ...]:
    """The columns that a person names with commas between; none where there is nothing."""
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
        limit: most of them to print; by default as many as people read, and all for programs.
        format: how; a table for people by default.
        head: what one JSON document says before its rows, instead of a format.
        guard: whether no text of the CSV may be a formula to a spreadsheet; it is not as in the table then.

    Raises:
        UsageError: what is asked for contradicts itself.
    """
    if guard and (head is not None or format is not Format.csv):
        raise UsageError("--guard-formulas is for spreadsheets, which read CSV.", "Add --format csv, or leave it out.")
    if head is not None and format is not None:
        raise UsageError("--json prints one document, and --format something else.", "Leave out one of them.")
    columns, rows = shown.columns, iter(shown)
    if head is not None:
        _print_document({**head, "columns": columns}, rows, limit)
        return
    match format or Format.table:
        case Format.csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            cell = _guarded if guard else _text
            writer.writerows([cell(row[name]) for name in columns] for row in islice(rows, limit))
        case Format.json:
            for row in islice(rows, limit):
                print(json.dumps({name: row[name] for name in columns}, default=_text, ensure_ascii=False))
        case Format.table:
            limit = limit or _SHOWN
            first = list(islice(rows, limit))
            more = next(rows, None) is not None
            said = f"the first {counted(limit, 'row')}; more with --limit" if more else counted(len(first), "row")
            print_parts([_table(title, columns, first), said])
            return
    if next(rows, None) is not None:
        _tell_that_there_are_more(limit)


def _table(title: str, columns: list[str], rows: list[dict[str, Any]]) -> Table:
    """The day whole; a table too wide for the screen folds its other values. A null is told from an empty text."""
    numbers = [name for name in columns if all(isinstance(row[name], int | float | Decimal | None) for row in rows)]
    cells: list[list[Cell]] = [[_NULL if row[name] is None else _text(row[name]) for name in columns] for row in rows]
    return Table(title, columns, cells, right=numbers, whole=(DAY,))


def _print_document(head: Mapping[str, Any], rows: Iterator[dict[str, Any]], limit: int | None) -> None:
    """Written as it is read: there may be more rows than memory."""
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
    """A value as text that no spreadsheet computes; numbers stay numbers, also those below zero."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else _text(value)


def _text(value: Any) -> str:
    """A value as text: exact, nothing for null, times as ISO 8601 has them."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
