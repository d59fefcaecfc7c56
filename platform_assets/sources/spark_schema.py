"""What a Parquet file says to Spark of its types, beside its schema, as Spark writes it.

Spark believes it, for all files that it takes for alike, and reads what lies there as something else: months as years,
whatever that makes of a number. A type can be a class, too, of which Spark then makes an object.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_UNREADABLE = "says something of its types to Spark that is no schema of Spark's; write it without"

_IS = pa.types
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
"""What the plain types of Spark's can be in a file."""


class _SaidTwiceError(ValueError):
    """A name of an object comes more than once: nobody knows which of them counts."""


def said_to_spark(metadata: pq.FileMetaData) -> str:
    """The schema that is meant for Spark, in its words; empty where there is none.

    Raises:
        UnicodeDecodeError: it is no text.
    """
    return bytes((metadata.metadata or {}).get(_KEY, b"")).decode()


def wrong_for_spark(said: str, schema: pa.Schema) -> str | None:
    """What is wrong with what a file says to Spark, if anything: it has to be what the file holds."""
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
