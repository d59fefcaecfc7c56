"""Delivered files: which file a row travels in, its bytes in each format, and the ways in which a line arrives broken.

A broken line is refused at parsing, or quarantined by a rule; one whose day is decades away waits in the late queue.
There are three groups, by what a file format can carry: other values in a well-formed row (every format), text where a
number or time belongs (CSV and JSON), and lines that are no row at all (each text format its own).
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import DAY, Contract

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
    """Return the content of a file in the format of its name, from a contract's columns and maybe `malformation`."""
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
    """Write under a hidden name first, so that no half file is visible. `modified_s`: seconds since 1970."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    if modified_s is not None:
        os.utime(unfinished, (modified_s, modified_s))
    unfinished.replace(file)


REFUSED, QUARANTINED = "malformed_refused", "malformed_quarantined"

_NOTHING = pl.lit(None)
_REFUSED_VALUES: Mapping[str, tuple[str, pl.Expr]] = {
    "null basket": ("basket_id", _NOTHING),
    "null product": ("product_id", _NOTHING),
    "null time": ("transaction_timestamp", _NOTHING),
    "null updated_at": ("updated_at", _NOTHING),
    "day in 1970": ("transaction_timestamp", pl.lit(datetime(1970, 1, 1, tzinfo=UTC))),
    "day in 2099": ("transaction_timestamp", pl.lit(datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC))),
}
_QUARANTINED_VALUES: Mapping[str, tuple[str, pl.Expr]] = {
    "null household": ("household_id", _NOTHING),
    "store 0": ("store_id", pl.lit(0)),
    "negative quantity": ("quantity", -1 - pl.col("quantity")),
    "negative sales value": ("sales_value", -1 - pl.col("sales_value")),
    "negative discount": ("retail_disc", -1 - pl.col("retail_disc")),
    "week 77": ("week", pl.lit(77)),
    "updated before sale": (
        "updated_at",
        pl.col("transaction_timestamp") - pl.duration(days=1),
    ),
}
_TEXTS: Mapping[str, tuple[str, str]] = {
    "text as quantity": ("quantity", "two"),
    "text as money": ("sales_value", "$ 1.99"),
    "text as store": ("store_id", "downtown"),
    "text as basket": ("basket_id", "#REF!"),
    "text as time": ("transaction_timestamp", "noon"),
}
_LINES: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "parquet": {},
    "csv": {
        "field missing": lambda line: line.rpartition(",")[0],
        "field too many": lambda line: f"{line},0",
        "quote left open": lambda line: f'"{line}',
        "line cut off": lambda line: line[: len(line) // 2],
    },
    "jsonl": {
        "line cut off": lambda line: line[: len(line) * 2 // 3],
        "no JSON": lambda line: line[1:],
    },
}
_FORMATS = {
    name: (*_REFUSED_VALUES, *_QUARANTINED_VALUES, *(_TEXTS if lines else ()), *lines) for name, lines in _LINES.items()
}


def with_malformation(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `malformation`, its name or null, by the format of the row's `file`; and mark such rows in `kind`."""
    kind = pl.col("file").str.split(".").list.last()
    chosen: pl.Expr = pl.lit(None, pl.String)
    for name, ways in _FORMATS.items():
        number = (pl.col("_malformation") * len(ways)).floor().clip(0, len(ways) - 1).cast(pl.Int64)
        way = number.replace_strict(range(len(ways)), ways, return_dtype=pl.String)
        chosen = pl.when(kind == name).then(way).otherwise(chosen)
    spoiled = rows.with_columns(malformation=chosen).drop("_malformation")
    return spoiled.with_columns(
        pl.when(pl.col("malformation").is_null())
        .then("kind")
        .when(pl.col("malformation").is_in(list(_QUARANTINED_VALUES)))
        .then(pl.lit(QUARANTINED))
        .otherwise(pl.lit(REFUSED))
        .alias("kind")
    )


def with_spoiled_values(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows as delivered, as far as values go; `event_date` stays the true day."""
    types = rows.schema
    spoiled: dict[str, pl.Expr] = {}
    for name, (column, value) in {**_REFUSED_VALUES, **_QUARANTINED_VALUES}.items():
        before = spoiled.get(column, pl.col(column))
        spoiled[column] = pl.when(pl.col("malformation") == name).then(value.cast(types[column])).otherwise(before)
    return rows.with_columns(**spoiled)


def spoil_line(line: str, malformation: str, format_: str, columns: tuple[str, ...]) -> str:
    """Return the line of a text file as delivered; malformations of values are in it already."""
    if malformation in _LINES[format_]:
        return _LINES[format_][malformation](line)
    if malformation not in _TEXTS:
        return line
    column, text = _TEXTS[malformation]
    if format_ == "csv":
        fields = line.split(",")
        fields[columns.index(column)] = text
        return ",".join(fields)
    before, after = line.split(f'"{column}":', 1)
    rest = after[after.index(',"') :]
    return f'{before}"{column}":"{text}"{rest}'
