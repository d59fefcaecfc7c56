"""Contracts as Spark schemas, made without a session."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract


def declared_types(schema: StructType) -> dict[str, str]:
    """Return the type of every field, by name and in the words of a contract, for people."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    return {name: {"bigint": "long"}.get(type_, type_) for name, type_ in types.items()}


def schema_of(**columns: str) -> StructType:
    """Return a schema of nullable columns from names and contract types, followed by the day."""
    fields = [
        {"name": name, "type": "integer" if type_ == "int" else type_, "nullable": True, "metadata": {}}
        for name, type_ in {**columns, DAY: "date"}.items()
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def spark_schema(contract: Contract) -> StructType:
    """Return columns of a silver or gold table."""
    return schema_of(**{column.name: column.type for column in contract.columns})


def raw_schema(contract: Contract) -> StructType:
    """Return columns of a raw table: as delivered, then where they came from and how they are ordered, then the day.

    `_arrival` is the file below the landing root, or the approval that took a late row from one; `_rescued` what the
    contract does not declare, as JSON; `_kind` one of record, void, tombstone, withdrawal; `_file_order` is the file's
    name as it sorts, and `_place` the row's place in it: they order versions that nothing else orders, and are null in
    rows that were taken before raw had them, as `_version` is in all others. `_row_hash` tells contents apart;
    `_order_day` is the day of the event.
    """
    return schema_of(
        **{column.name: column.type for column in contract.columns},
        _arrival="string",
        _arrival_date="date",
        _rescued="string",
        _kind="string",
        _version="timestamp",
        _file_order="string",
        _place="long",
        _row_hash="long",
        _order_day="date",
    )


DEAD_LETTERS = schema_of(_arrival="string", _reason="string", _payload="string")
"""Origin (file below the landing root), reason, the row as JSON or as delivered, and the day.

The day of a refused row is its arrival date, since it has none that can be trusted.
"""

REFUSED = schema_of(_arrival="string", _reason="string", _payload="string", _row="long", _place="long", _attempts="int")
"""The same of rows refused at parsing, with the number of the row in its file from 1, its place among the versions of
that file, and how often it was refused, 0 once its file came again with other content; null in rows from before these.
"""


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Return a frame with columns added or replaced; Spark Connect adds every number of columns but none."""
    return frame.withColumns(dict(columns)) if columns else frame
