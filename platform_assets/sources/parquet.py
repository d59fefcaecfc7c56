"""Judge a Parquet file: the content by its footer, its usable types, and its unpacked size.

A footer may contain anything, so a file is read through once, in a process that may die of it.

Spark believes its own types in a file's metadata, for all files that it considers alike: it would read months as years,
and make an object of a class. They must match the file's schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import Column, Contract
from platform_assets.contracts.columns import MOST_DIGITS
from platform_assets.records.schema_drift import SOURCE_COLUMNS
from platform_assets.sources.columns import listed, repeated_names
from platform_assets.sources.limits import Limits

_MOST_FOOTER = 1 << 26
"""Bytes of a footer, which has to be held whole to see anything of the file, and many times over."""
_ENDING = 8
"""Bytes after the footer: its length, and four letters."""

_SHOWN = 10
"""Most columns whose problems are listed one by one."""

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "ZSTD"})
_UNKNOWN_ENCODINGS = frozenset({"BYTE_STREAM_SPLIT"})

_ROWS_AT_ONCE = 8192
_FEW_ROWS = 32
_BYTES_AT_ONCE = 1 << 26
_MOST_HELD = 768 << 20
"""Bytes that reading a few rows may take: a page is unpacked whole, by Spark too, which has less memory for it."""

_INT_BITS = 32

_FOR_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_UNREADABLE = "has Spark metadata that is not a Spark schema; write it without"

_NS = "nanoseconds"
_Is = Callable[[pa.DataType], bool]

_IS = pa.types

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
_HOLDS: dict[str, Callable[[pa.DataType], bool]] = {
    "byte": _IS.is_int8,
    "short": _IS.is_int16,
    "integer": _IS.is_int32,
    "long": _IS.is_int64,
    "float": _IS.is_float32,
    "double": _IS.is_float64,
    "boolean": _IS.is_boolean,
    "string": lambda type_: _IS.is_string(type_) or _IS.is_large_string(type_) or _IS.is_dictionary(type_),
    "binary": lambda type_: _IS.is_binary(type_) or _IS.is_large_binary(type_) or _IS.is_fixed_size_binary(type_),
    "date": _IS.is_date32,
    "timestamp": _IS.is_timestamp,
    "timestamp_ntz": lambda type_: _IS.is_timestamp(type_) and type_.tz is None,
}
"""Which types of a file the plain types of Spark can be."""


def _is_text(type_: pa.DataType) -> bool:
    return bool(_IS.is_string(type_) or _IS.is_large_string(type_) or _IS.is_string_view(type_))


def too_large_footer(stream: BinaryIO, size: int) -> str | None:
    """Return the problem of a footer that is too long to read, if it is."""
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
    """Return which limit a file exceeds by its footer, if any."""
    if metadata.num_rows < 0:
        return f"is corrupt: its footer counts {metadata.num_rows:,} rows"
    unpacked = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    return (
        limits.too_many_rows(rows_of(metadata))
        or limits.too_many_columns(metadata.num_columns)
        or limits.unpacks_too_far(unpacked, size)
    )


def depth(type_: pa.DataType) -> int:
    """Return the depth of nested fields: 1 for a plain one."""
    return 1 + max((depth(type_.field(n).type) for n in range(type_.num_fields)), default=0)


def wrong_types(schema: pa.Schema, contract: Contract) -> str | None:
    """Return all reasons why the columns of a file cannot become those of its contract."""
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
    """Return the problem of columns in an encoding that Spark cannot read, if any: Spark then reads no row of it."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    encodings = {name for group in groups for n in range(group.num_columns) for name in group.column(n).encodings}
    if unknown := sorted(encodings & _UNKNOWN_ENCODINGS):
        return f"has columns encoded as {', '.join(unknown)}, which Spark does not read; write them plain"
    return None


def unknown_codec(metadata: pq.FileMetaData) -> str | None:
    """Return the problem of columns in a compression that Spark does not support, if any."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    codecs = {group.column(n).compression for group in groups for n in range(group.num_columns)}
    if unknown := sorted(codecs - _CODECS):
        return f"is compressed with {', '.join(unknown)}; known are {', '.join(sorted(_CODECS))}"
    return None


def _unusable_type(type_: pa.DataType, column: Column) -> str | None:
    """Return the type in words, if it cannot become the type of a contract's column."""
    type_ = _plain(type_)
    possible = (_is_text, _IS.is_null, *_BECOMES[column.type.partition("(")[0]], *(_NUMBERS if column.epoch else ()))
    return None if any(is_(type_) for is_ in possible) else str(type_)


def unreadable_column(schema: pq.ParquetSchema) -> str | None:
    """Return the problem of a column of a type that Spark cannot read, if any; it then reads nothing of the file."""
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
    """Return the plain columns in nanoseconds, each with the text after its moments: `Z`, or nothing for local time."""
    plain = (c for c in map(schema.column, range(len(schema))) if c.path == c.name and c.max_repetition_level == 0)
    said = [(column.path, json.loads(column.logical_type.to_json())) for column in plain]
    return tuple(
        (path, "Z" if type_["isAdjustedToUTC"] else "") for path, type_ in said if type_.get("timeUnit") == _NS
    )


def _repeated_fields(type_: pa.DataType, path: str) -> Iterator[str]:
    """Return the fields of a column, by path, whose names are the same name to Spark, which then reads nothing."""
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


def type_in_contracts(type_: pa.DataType) -> str:
    """Return the type of a contract that holds all numbers of one in a file; empty of what is no whole number."""
    type_ = _plain(type_)
    if _IS.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if not _IS.is_integer(type_):
        return ""
    return "int" if type_.bit_width < _INT_BITS or type_ == pa.int32() else "long"


def columns_of_source(metadata: pq.FileMetaData) -> dict[str, str]:
    """Return the columns of the table that a file is a reading of, which may be more than it has, with their types."""
    return dict(json.loads((metadata.metadata or {}).get(SOURCE_COLUMNS.encode(), b"{}")))


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if _IS.is_dictionary(type_) else type_


def becomes_too_much(stream: BinaryIO, metadata: pq.FileMetaData, size: int, limits: Limits) -> str | None:
    """Read a file through and return the limit that its values exceed, or that its footer miscounts the rows."""
    declared = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    at_once = max(min(_BYTES_AT_ONCE * rows_of(metadata) // max(declared, 1), _ROWS_AT_ONCE), 1)
    try:
        return _read_through(stream, metadata, size, limits, at_once)
    except (MemoryError, pa.ArrowInvalid):  # as of values that are written once and meant often
        return _read_through(stream, metadata, size, limits, min(at_once, _FEW_ROWS))


def _read_through(stream: BinaryIO, metadata: pq.FileMetaData, size: int, limits: Limits, at_once: int) -> str | None:
    rows = unpacked = 0
    held_before = pa.total_allocated_bytes()
    # Without a buffer of its own, whole columns of a row group would be held.
    for read in pq.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20).iter_batches(at_once):
        if pa.total_allocated_bytes() - held_before > _MOST_HELD:
            if at_once > _FEW_ROWS:
                raise MemoryError
            return f"needs more than {_MOST_HELD >> 20} MiB to read a few rows of it; write smaller pages"
        schema = pa.schema([field.with_type(_written_out(field.type)) for field in read.schema])
        batch = read if schema.equals(read.schema) else read.cast(schema)
        unpacked += batch.nbytes
        if reason := limits.repeats_too_much(unpacked, size):
            return reason
        if (long := _long_row(batch, limits.line_bytes)) is not None:
            return limits.row_too_long(limits.line_bytes + 1, rows + long + 1)
        rows += len(batch)
    return None if rows == rows_of(metadata) else "is corrupt: its footer counts other rows than it has"


def _long_row(batch: pa.RecordBatch, most: int) -> int | None:
    """Return the place of the first row that has more bytes."""
    if batch.nbytes <= most:
        return None
    if len(batch) == 1:
        return 0
    half = len(batch) // 2
    if (found := _long_row(batch.slice(0, half), most)) is not None:
        return found
    return None if (found := _long_row(batch.slice(half), most)) is None else half + found


def _written_out(type_: pa.DataType) -> pa.DataType:
    """Return the type that stores each value as often as it occurs: neither dictionaries nor views."""
    if _IS.is_dictionary(type_):
        return type_.value_type
    if _IS.is_struct(type_):
        return pa.struct([field.with_type(_written_out(field.type)) for field in type_])
    if _IS.is_map(type_):
        return pa.map_(_written_out(type_.key_type), type_.item_field.with_type(_written_out(type_.item_type)))
    for is_list, make in ((_IS.is_list, pa.list_), (_IS.is_large_list, pa.large_list)):
        if is_list(type_):
            return make(type_.value_field.with_type(_written_out(type_.value_type)))
    if _IS.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(_written_out(type_.value_type)), type_.list_size)
    return pa.string() if _IS.is_string_view(type_) else pa.binary() if _IS.is_binary_view(type_) else type_


class _SaidTwiceError(ValueError):
    """A name occurs more than once in an object."""


def said_to_spark(metadata: pq.FileMetaData) -> str:
    """Return the Spark schema in a file's metadata; empty without one."""
    return bytes((metadata.metadata or {}).get(_FOR_SPARK, b"")).decode()


def wrong_for_spark(said: str, schema: pa.Schema) -> str | None:
    """Return the problem of a file whose Spark metadata contradicts its own schema."""
    if not said:
        return None
    classes: list[str] = []

    def checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _SaidTwiceError
        if found.get("type") == "udt":
            classes.append(str(found.get("class") or found.get("pyClass")))
        return found

    try:
        fields = json.loads(said, object_pairs_hook=checked)["fields"]
        types = {field["name"]: field["type"] for field in fields}
    except (ValueError, RecursionError, LookupError, TypeError):
        return _UNREADABLE
    if classes:
        return f"has a type of Spark's that is a program's class, {classes[0][:100]}; write plain columns"
    for name, type_ in types.items():
        if isinstance(type_, str) and name in schema.names and not _holds(type_, schema.field(name).type):
            return f"says to Spark that {name} is {type_[:100]}, and holds {schema.field(name).type}; write it as it is"
    return None


def _holds(said: str, type_: pa.DataType) -> bool:
    if said.startswith("decimal(") and _IS.is_decimal(type_):
        return said == f"decimal({type_.precision},{type_.scale})"
    return said in _HOLDS and _HOLDS[said](type_)
