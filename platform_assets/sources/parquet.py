"""What a Parquet file says of itself: how much is in it, and which types can be read, or become a column's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import Column, Contract
from platform_assets.contracts.columns import MOST_DIGITS
from platform_assets.sources.limits import Limits
from platform_assets.sources.names import listed, repeated_names

_MOST_FOOTER = 1 << 26
"""Bytes of a footer, which has to be held whole to see anything of the file, and many times over."""
_ENDING = 8
"""Bytes after the footer: its length, and four letters."""

_SHOWN = 10
"""Columns of which each is told by itself what is wrong with it."""

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "ZSTD"})
_UNKNOWN_ENCODINGS = frozenset({"BYTE_STREAM_SPLIT"})

_NS = "nanoseconds"
_Is = Callable[[pa.DataType], bool]

_IS = pa.types


def _is_text(type_: pa.DataType) -> bool:
    return bool(_IS.is_string(type_) or _IS.is_large_string(type_) or _IS.is_string_view(type_))


_NUMBERS: tuple[_Is, ...] = (_IS.is_integer, _IS.is_floating, _IS.is_decimal)
_BECOMES: dict[str, tuple[_Is, ...]] = {
    "long": _NUMBERS,
    "int": _NUMBERS,
    "double": _NUMBERS,
    "decimal": _NUMBERS,
    "boolean": (_IS.is_boolean,),
    "timestamp": (_IS.is_timestamp, _IS.is_date),
    "date": (_IS.is_date, _IS.is_timestamp),
    "string": (*_NUMBERS, _IS.is_boolean, _IS.is_date, _IS.is_timestamp),
}
"""Besides text and nothing at all, which can become anything. Values that do not fit refuse their row."""


def too_large_footer(stream: BinaryIO, size: int) -> str | None:
    """That a footer is longer than anybody should have to read, if so."""
    stream.seek(max(size - _ENDING, 0))
    said = int.from_bytes(stream.read(4), "little")
    if _MOST_FOOTER < said < size:
        return f"has a footer of {said:,} bytes, more than {_MOST_FOOTER:,}; write fewer columns or row groups"
    return None


def rows_of(metadata: pq.FileMetaData) -> int:
    """Return how many rows a footer counts; some programs leave out the total of its row groups."""
    groups = sum(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))
    return int(metadata.num_rows or groups)


def beyond(metadata: pq.FileMetaData, size: int, limits: Limits) -> str | None:
    """Which bound a file passes by what its footer says is in it, if it does."""
    if metadata.num_rows < 0:
        return f"is corrupt: its footer counts {metadata.num_rows:,} rows"
    unpacked = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    return (
        limits.too_many_rows(rows_of(metadata))
        or limits.too_many_columns(metadata.num_columns)
        or limits.unpacks_too_far(unpacked, size)
    )


def depth(type_: pa.DataType) -> int:
    """How deep fields lie in each other: 1 for a plain one."""
    return 1 + max((depth(type_.field(n).type) for n in range(type_.num_fields)), default=0)


def wrong_types(schema: pa.Schema, contract: Contract) -> str | None:
    """All that keeps the columns of a file from becoming those of its contract, if anything."""
    declared = {column.name: column for column in contract.columns}
    becomes = [(field, declared[field.name]) for field in schema if field.name in declared]
    unusable = [(field.name, _unusable_type(field.type, column), column.type) for field, column in becomes]
    repeated = [name for field in schema for name in _repeated_fields(field.type, field.name)]
    reasons = [
        "has a column without a name" if "" in schema.names else None,
        *[f"has {name} as {what}, which cannot become {type_}" for name, what, type_ in unusable if what][:_SHOWN],
        f"has the field {listed(repeated)} more than once" if repeated else None,
    ]
    return "; ".join(filter(None, reasons)) or None


def unknown_encoding(metadata: pq.FileMetaData) -> str | None:
    """That columns are written in a way that Spark does not read, if so; it then reads nothing of the file."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    encodings = {name for group in groups for n in range(group.num_columns) for name in group.column(n).encodings}
    if unknown := sorted(encodings & _UNKNOWN_ENCODINGS):
        return f"has columns encoded as {', '.join(unknown)}, which Spark does not read; write them plain"
    return None


def unknown_codec(metadata: pq.FileMetaData) -> str | None:
    """That columns are compressed in a way that Spark does not know, if so."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    codecs = {group.column(n).compression for group in groups for n in range(group.num_columns)}
    if unknown := sorted(codecs - _CODECS):
        return f"is compressed with {', '.join(unknown)}; known are {', '.join(sorted(_CODECS))}"
    return None


def _unusable_type(type_: pa.DataType, column: Column) -> str | None:
    """The type, as a person may see it, if it cannot become that of a contract's column."""
    type_ = _plain(type_)
    possible = (_is_text, _IS.is_null, *_BECOMES[column.type.partition("(")[0]], *(_NUMBERS if column.epoch else ()))
    return None if any(is_(type_) for is_ in possible) else str(type_)


def unreadable_column(schema: pq.ParquetSchema) -> str | None:
    """That a column is of a type that Spark cannot read, if so; it then reads nothing of the file."""
    in_nanoseconds = dict(nanoseconds(schema))
    for column in (schema.column(n) for n in range(len(schema))):
        kind = column.logical_type.type
        if _NS in str(column.logical_type) and kind == "TIMESTAMP" and column.path not in in_nanoseconds:
            return f"has {column.path} in nanoseconds, which Spark does not read; write microseconds"
        if kind in {"TIME", "FLOAT16"}:
            return f"has {column.path} as {kind}, which Spark does not read; write it as text or as a number"
        if kind == "DECIMAL" and column.precision > MOST_DIGITS:
            return f"has {column.path} with {column.precision} digits; Spark reads at most {MOST_DIGITS}"
    return None


def nanoseconds(schema: pq.ParquetSchema) -> tuple[tuple[str, str], ...]:
    """Return the plain columns in nanoseconds, each with what follows a moment of it: `Z`, or nothing of local time."""
    plain = (c for c in map(schema.column, range(len(schema))) if c.path == c.name and c.max_repetition_level == 0)
    said = [(column.path, json.loads(column.logical_type.to_json())) for column in plain]
    return tuple(
        (path, "Z" if type_["isAdjustedToUTC"] else "") for path, type_ in said if type_.get("timeUnit") == _NS
    )


def _repeated_fields(type_: pa.DataType, path: str) -> Iterator[str]:
    """The fields of a column, by their paths, whose names are one name to Spark; it then reads nothing of the file."""
    if _IS.is_struct(type_):
        fields = [type_.field(n) for n in range(type_.num_fields)]
        yield from (f"{path}.{name}" for name in repeated_names([field.name for field in fields]))
        for field in fields:
            yield from _repeated_fields(field.type, f"{path}.{field.name}")
    elif _IS.is_map(type_):
        yield from _repeated_fields(type_.key_type, f"{path}.key")
        yield from _repeated_fields(type_.item_type, f"{path}.value")
    elif _IS.is_list(type_) or _IS.is_large_list(type_) or _IS.is_fixed_size_list(type_):
        yield from _repeated_fields(type_.value_type, f"{path}.element")


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if _IS.is_dictionary(type_) else type_
