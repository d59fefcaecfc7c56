"""Delivered files: which file a row travels in, its bytes in each format, and how it is written."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import DAY, Contract
from platform_assets.domains.retail.sample.malformations import spoil_line

PRODUCT_FILES = ("products-1.parquet", "products-2.csv", "products-1.parquet", "products-3.jsonl")
TILL_FILES = ("tills-1.parquet", "tills-2.csv", "tills-1.parquet", "tills-3.jsonl")
"""By store number: about half of the rows in Parquet, a quarter each in CSV and JSON lines."""

_CORRECTIONS = ("corrections-1.parquet", "corrections-2.csv", "corrections-3.jsonl")
_EVERY = 5
_TIMES = "%Y-%m-%dT%H:%M:%SZ"
_TYPES = {
    "long": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "decimal(12,2)": pa.decimal128(12, 2),
}

STATE = ".simulation.json"


def arrow_schema(contract: Contract, *more: pa.Field) -> pa.Schema:
    """Return the contract's columns as Parquet files carry them."""
    return pa.schema([*((column.name, _TYPES[column.type]) for column in contract.columns), *more])


def file_of_line(last: date) -> pl.Expr:
    """Return the file of a till line, by store and arrival date.

    What comes after its day travels in a file of corrections, except on every fifth date, on which the tills send it
    along with the day's sales.
    """
    till = (pl.col("store_id") % len(TILL_FILES)).replace_strict(
        range(len(TILL_FILES)), TILL_FILES, return_dtype=pl.String
    )
    date_number = pl.col("arrival_date").to_physical()
    correction = (date_number % len(_CORRECTIONS)).replace_strict(
        range(len(_CORRECTIONS)), _CORRECTIONS, return_dtype=pl.String
    )
    on_time = (pl.col("kind") == "original") & (pl.col("arrival_date") == pl.col(DAY))
    together = (date_number % _EVERY == 0) & (pl.col("arrival_date") <= last)
    return pl.when(on_time | together).then(till).otherwise(correction)


def file_of_product() -> pl.Expr:
    """Return the file of a product's attributes, by its number."""
    return (pl.col("product_id") % len(PRODUCT_FILES)).replace_strict(
        range(len(PRODUCT_FILES)), PRODUCT_FILES, return_dtype=pl.String
    )


def encode(rows: pl.DataFrame, contract: Contract, name: str) -> bytes:
    """Return the content of a file.

    Args:
        rows: the contract's columns and, where lines can be broken, `malformation`.
        name: of the file; its ending is the format.
    """
    columns = list(contract.column_names)
    format_ = name.rpartition(".")[2]
    buffer = io.BytesIO()
    if format_ == "parquet":
        table = rows.select(columns).to_arrow().cast(arrow_schema(contract))
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()
    if format_ == "csv":
        rows.select(columns).write_csv(buffer, datetime_format=_TIMES)
    else:
        exact = [
            pl.col(column.name).dt.strftime(_TIMES)
            if column.type == "timestamp"
            else pl.col(column.name).cast(pl.String)
            for column in contract.columns
            if column.type in {"timestamp", "date"} or column.type.startswith("decimal")
        ]
        rows.select(columns).with_columns(*exact).write_ndjson(buffer)
    broken = (
        rows.with_row_index("_row").filter(pl.col("malformation").is_not_null()).select("_row", "malformation").rows()
        if "malformation" in rows.columns
        else []
    )
    return _break_lines(buffer.getvalue(), broken, format_, contract.column_names) if broken else buffer.getvalue()


def _break_lines(content: bytes, broken: Sequence[tuple[int, str]], format_: str, columns: tuple[str, ...]) -> bytes:
    lines = content.decode().split("\n")
    header = 1 if format_ == "csv" else 0
    for row, malformation in broken:
        lines[row + header] = spoil_line(lines[row + header], malformation, format_, columns)
    return "\n".join(lines).encode()


def delivered_at(arrival: date) -> float:
    """Return when the files of an arrival date were last changed: that morning at six, in seconds since 1970."""
    return datetime.combine(arrival, time(6), UTC).timestamp()


def write(file: Path, content: bytes, modified_s: float | None = None) -> None:
    """Under a hidden name first, so that nobody ever sees half a file.

    Args:
        modified_s: when it was last changed, in seconds since 1970; now by default.
    """
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    if modified_s is not None:
        os.utime(unfinished, (modified_s, modified_s))
    unfinished.replace(file)
