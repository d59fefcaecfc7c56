"""Convert a PostgreSQL reading from CSV into files by arrival date, with DuckDB."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from platform_assets.contracts import Column, Contract
from platform_assets.lakehouse.reading import quoted
from platform_assets.records.schema_drift import SOURCE_COLUMNS
from platform_assets.sources.postgres_server import Types
from platform_assets.sources.source import SourceError

if TYPE_CHECKING:
    import duckdb

READ_AT, IS_DELETED, ROW_HASH = "read_at", "is_deleted", "row_hash"
READING = (
    Column(READ_AT, "timestamp", "When the row was read from the database.", nullable=False),
    Column(IS_DELETED, "boolean", "Whether the row was gone when it was read."),
    Column(ROW_HASH, "long", "Hash of the row's content, computed by the database.", additive=False),
)
"""Columns that each reading adds; the contract of a raw table that is read from PostgreSQL ends with them."""

OWN = {column.name: column.type for column in READING}

_MOMENT = "%Y%m%dT%H%M%S%f"
_PIECE_ROWS = 5_000_000
_LONGEST_ROW = 16 << 20
"""As ingest takes it. DuckDB would make its buffers 16 times as large, and cuts no file with line breaks in parts."""


class Position(NamedTuple):
    """How far a table was read, and when: the text that identifies a reading."""

    upto: datetime
    read_at: datetime

    def __str__(self) -> str:
        return f"{self.upto:{_MOMENT}}-{self.read_at:{_MOMENT}}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a position from its text, which may end with the reason of a repeated reading."""
        return cls(*(datetime.strptime(part, _MOMENT).replace(tzinfo=UTC) for part in text.split("-")[:2]))


def load(rows: duckdb.DuckDBPyConnection, table: str, csv: Path, types: Types, copied: int) -> None:
    """Load a copy into a table: text of the contract's columns, `row_hash`, `_mark` and `_day`."""
    import duckdb

    names = [*types.of, ROW_HASH, "_mark", "_day"]
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    csv.touch()  # of no rows at all there may be none
    try:
        rows.execute(
            f"CREATE TABLE {table} AS SELECT * REPLACE (CAST({ROW_HASH} AS BIGINT) AS {ROW_HASH}, "
            f"CAST(_mark AS TIMESTAMPTZ) AS _mark) FROM read_csv(?, auto_detect = false, header = false, delim = ',', "
            f"quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, new_line = '\\n', "
            f"max_line_size = {_LONGEST_ROW}, buffer_size = {2 * _LONGEST_ROW}, parallel = false, "
            f"columns = {{{columns}}})",
            [str(csv)],
        )
        [(found,)] = rows.execute(f"SELECT count(*) FROM {table}").fetchall()
    except duckdb.Error as error:
        raise SourceError(
            f"Rows of {types.contract.name} were copied and cannot be read back: {str(error).splitlines()[0]}",
            f"A row may have {_LONGEST_ROW >> 20} MiB, in UTF-8. Read a view without the columns that are longer.",
        ) from error
    if found != copied:
        raise SourceError(
            f"{copied:,} rows of {types.contract.name} were copied, and {found:,} are there.",
            "Nothing of this reading was kept; run the same again.",
        )
    csv.unlink()


def delivered(contract: Contract, position: Position) -> str:
    """Return the columns of a reading's file, all as text, from a table of `load`."""
    own = {
        READ_AT: f"'{position.read_at.isoformat()}'",
        IS_DELETED: "'false'",
        ROW_HASH: f"CAST({ROW_HASH} AS VARCHAR)",
    }
    return ", ".join(f"{own.get(name, quoted(name))} AS {quoted(name)}" for name in contract.column_names)


def write(
    rows: duckdb.DuckDBPyConnection, query: str, folder: Path, types: Types, empty_at: date | None = None
) -> dict[date, list[Path]]:
    """Write rows into Parquet files of bounded size, by `_arrival`, their last column; footers have all `types`."""
    there = json.dumps(dict(types.there)).replace("'", "''")
    form = f"FORMAT parquet, KV_METADATA {{'{SOURCE_COLUMNS}': '{there}'}}"
    if empty_at:
        file = folder / "none.parquet"
        rows.execute(f"COPY (SELECT * EXCLUDE (_arrival) FROM ({query})) TO '{_text(file)}' ({form})")
        return {empty_at: [file]}
    target = folder / "files"
    rows.execute(
        f"COPY (SELECT *, (row_number() OVER ()) // {_PIECE_ROWS} AS _piece FROM ({query})) TO '{_text(target)}' "
        f"({form}, COMPRESSION zstd, PARTITION_BY (_arrival, _piece), WRITE_PARTITION_COLUMNS false)"
    )
    files: dict[date, list[Path]] = {}
    for file in sorted(target.rglob("*.parquet")):
        files.setdefault(date.fromisoformat(file.parts[-3].partition("=")[2]), []).append(file)
    return files


def _text(path: Path) -> str:
    return str(path).replace("'", "''")
