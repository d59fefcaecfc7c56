"""A look into landed files before Spark sees them: columns, rows, and whether they can be taken at all."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import Contract
from platform_assets.sources.landing import LandedFile


@dataclass(frozen=True)
class Inspection:
    """What a file holds.

    Args:
        columns: names as delivered, in the file's order; of JSON lines the contract's, since each line names its own.
        schema: a text that equal Parquet schemas share; files of one layout are read together.
        landed: rows: physical lines that are not blank, or the number in the Parquet footer.
        reason: why the file is refused whole, if it is.
        notes: what a person should know.
    """

    columns: tuple[str, ...]
    schema: str
    landed: int
    reason: str | None = None
    notes: tuple[str, ...] = ()


def inspect(file: LandedFile, contract: Contract) -> Inspection:
    """Read just enough of a file to say whether it can be taken."""
    match file.format:
        case "parquet":
            return _inspect_parquet(file, contract)
        case "csv":
            return _inspect_csv(file, contract)
        case _:
            return _inspect_json(file, contract)


def is_readable(file: LandedFile) -> str | None:
    """Why a Parquet file cannot be read to its end, if so; the footer alone does not tell."""
    try:
        parquet = pq.ParquetFile(file.file)
        for group in range(parquet.num_row_groups):
            parquet.read_row_group(group)
    except (pa.ArrowException, OSError) as error:
        return f"is corrupt: {_first_line(error)}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


def _judge(columns: tuple[str, ...], schema: str, landed: int, contract: Contract) -> Inspection:
    missing = [name for name in contract.column_names if name not in columns]
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        return Inspection(
            columns,
            schema,
            landed,
            f"has the column {', '.join(repeated)} more than once",
        )
    if missing:
        expected = ", ".join(contract.column_names)
        return Inspection(
            columns,
            schema,
            landed,
            f"lacks the column {', '.join(missing)}; expected are {expected}",
        )
    extra = [name for name in columns if name not in contract.column_names]
    notes = (f"extra column {', '.join(extra)} kept in _rescued",) if extra else ()
    return Inspection(columns, schema, landed, None, notes)


def _inspect_parquet(file: LandedFile, contract: Contract) -> Inspection:
    try:
        parquet = pq.ParquetFile(file.file)
    except (pa.ArrowException, OSError) as error:
        return Inspection((), "", 0, f"is not a Parquet file: {_first_line(error)}")
    schema = parquet.schema_arrow.remove_metadata()
    return _judge(tuple(schema.names), schema.to_string(), parquet.metadata.num_rows, contract)


def _lines(file: LandedFile) -> list[bytes]:
    return [line for line in file.file.read_bytes().splitlines() if line.strip()]


def _inspect_csv(file: LandedFile, contract: Contract) -> Inspection:
    lines = _lines(file)
    if not lines:
        return Inspection((), "", 0, "is empty: not even a header line")
    try:
        header = lines[0].decode("utf-8-sig")
    except UnicodeDecodeError:
        return Inspection((), "", 0, "is not UTF-8 text")
    columns = tuple(name.strip() for name in next(csv.reader(io.StringIO(header))))
    return _judge(columns, header, len(lines) - 1, contract)


def _inspect_json(file: LandedFile, contract: Contract) -> Inspection:
    lines = _lines(file)
    notes = () if lines else ("empty file: no rows",)
    if lines and lines[0].lstrip().startswith(b"["):
        return Inspection((), "", len(lines), "is a JSON array; deliver one object per line")
    return Inspection(contract.column_names, "", len(lines), None, notes)
