"""The ways in which a line arrives broken, and what becomes of it: refused at parsing, or quarantined by a rule.

One whose day is decades away is as good as refused: it waits in the late queue.

Three groups, by what a file format can carry: other values in a well-formed row (every format), text where a number or
time belongs (CSV and JSON), and lines that are no row at all (each text format its own).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import polars as pl

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


def named(rows: pl.DataFrame) -> pl.DataFrame:
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
