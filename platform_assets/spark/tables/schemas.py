"""Schemas of contracts in Spark, and the digest of rows as an aggregate, without a session.

Every column is hashed together with a flag for null, because `xxhash64` skips nulls and would hash `(1, NULL)` and
`(NULL, 1)` alike. Columns count by their names, in any order: two that swap names are other content, two that swap
places are not. Two salts and 32-bit halves keep the sums within a bigint for two billion rows a day.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract
from platform_assets.records.differences import HALVES, Digest


def declared_types(schema: StructType) -> dict[str, str]:
    """Return the type of every field by name, by the contract's type names, for people."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    return {name: {"bigint": "long"}.get(type_, type_) for name, type_ in types.items()}


def column_problems(
    declared: Mapping[str, str], there: Mapping[str, str], may_lack: Collection[str] = ()
) -> Iterator[str]:
    """Yield how columns differ from the declared ones, each by name; both map names to types."""
    yield from (f"{name} is missing" for name in declared if name not in there and name not in may_lack)
    yield from (f"{name} is not declared" for name in there if name not in declared)
    both = [name for name in declared if name in there and there[name] != declared[name]]
    yield from (f"{name} is {there[name]}, declared {declared[name]}" for name in both)


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
    """Return columns of a raw table: as delivered, then their origin and order, then the day.

    `_arrival` is the file below the landing root, or the approval that took a late row from one; `_rescued` what the
    contract does not declare, as JSON; `_kind` one of record, void, tombstone, withdrawal; `_file_order` is the file's
    name as it sorts, and `_place` the row's place in it: they order versions that nothing else orders, and are null in
    rows that were taken before raw had them, as `_version` is in all others. `_row_hash` identifies the content;
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
    """Return a frame with columns added or replaced; Spark Connect accepts any number of columns except none."""
    return frame.withColumns(dict(columns)) if columns else frame


_SALTS = (7_046_029_254_386_353_131, 2_870_177_450_012_600_261)
_LOW_HALF = 0xFFFFFFFF
_NONNEGATIVE = 2**63 - 1


def order_hash(columns: Sequence[str]) -> Column:
    """Return a 64-bit hash of a row that orders versions of one instant.

    It is unchanged by an added column that is null in the row, so rows from before and after can be compared.
    """
    salt = _SALTS[0]
    return F.expr(" ^ ".join(f"if(isnull(`{name}`), 0L, xxhash64({salt}L, '{name}', `{name}`))" for name in columns))


def digest_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns of a digest, in its order.

    A row's place in its file is not included: the number depends on how Spark split the file, its order does not.
    """
    return sorted(name for name in columns if name != "_place")


def digest_salts(columns: Sequence[str]) -> list[int]:
    """Return the first values of a digest's two hashes, for columns in the digest's order."""
    return [_salted(columns, salt) for salt in _SALTS]


def digest_sums(columns: Sequence[str]) -> list[Column]:
    """Return the aggregates behind a digest, named `_digest_0` and so on; the caller counts the rows."""
    columns = digest_columns(columns)
    sums: list[str] = []
    for salt in _SALTS:
        hashed = row_hash_sql(columns, salt)
        sums += [f"sum({hashed} & {_LOW_HALF}L)", f"sum(shiftrightunsigned({hashed}, 32))"]
    return [F.expr(f"{total} AS _digest_{n}") for n, total in enumerate(sums)]


def row_hash_sql(columns: Sequence[str], salt: int = _SALTS[0]) -> str:
    """Return a 64-bit hash of a row's columns that distinguishes nulls and neighbouring columns.

    In SQL: built from columns, every part of it would be a call into the JVM, hundreds for a table.
    """
    names = sorted(columns)
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    parts = [f"{_salted(names, salt)}L", *(part for name in quoted for part in (f"isnull({name})", name))]
    return f"xxhash64({', '.join(parts)})"


def _salted(names: Sequence[str], salt: int) -> int:
    """Put column names into a salt, common to all rows, instead of hashing them with each."""
    return salt ^ int.from_bytes(blake2b(json.dumps(names).encode(), digest_size=8).digest()) & _NONNEGATIVE


def digest_of(row: Row, rows: int) -> Digest:
    """Return the digest from a row with the aggregates of `digest_sums`."""
    a, b, c, d = (int(row[f"_digest_{n}"] or 0) for n in range(HALVES))
    return Digest(rows, (a, b, c, d))
