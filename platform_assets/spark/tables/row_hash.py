"""The digest as a Spark aggregate.

Every column is hashed together with a flag that says whether it is null, because `xxhash64` skips nulls and would
take `(1, NULL)` and `(NULL, 1)` for the same row. Columns count by their names, in whatever order they come: two that
change names are other content, two that change places are not. Two salts and 32-bit halves keep the sums within a
bigint for two billion rows a day.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from platform_assets.records.digest import HALVES, Digest

_SALTS = (7_046_029_254_386_353_131, 2_870_177_450_012_600_261)
_LOW_HALF = 0xFFFFFFFF
_NONNEGATIVE = 2**63 - 1


def row_hash(columns: Sequence[str]) -> Column:
    """Return a 64-bit hash of a row's columns that tells nulls and neighbouring columns apart."""
    return F.expr(row_hash_sql(columns))


def order_hash(columns: Sequence[str]) -> Column:
    """Return a 64-bit hash of a row that orders versions of one instant.

    It stays what it is where a column is added of which the row has nothing, so that rows which came before and after
    can be compared.
    """
    salt = _SALTS[0]
    return F.expr(" ^ ".join(f"if(isnull(`{name}`), 0L, xxhash64({salt}L, '{name}', `{name}`))" for name in columns))


def digest_sums(columns: Sequence[str]) -> list[Column]:
    """Return the aggregates behind a digest, named `_digest_0` and so on; the row count is the caller's own.

    Where a row stands in its file is no part of it: the number depends on how Spark dealt out the file, its order not.
    """
    columns = [name for name in columns if name != "_place"]
    sums: list[str] = []
    for salt in _SALTS:
        hashed = row_hash_sql(columns, salt)
        sums += [f"sum({hashed} & {_LOW_HALF}L)", f"sum(shiftrightunsigned({hashed}, 32))"]
    return [F.expr(f"{total} AS _digest_{n}") for n, total in enumerate(sums)]


def row_hash_sql(columns: Sequence[str], salt: int = _SALTS[0]) -> str:
    """In SQL: put together from columns, every part of it would be a call into the JVM, hundreds for a table."""
    names = sorted(columns)
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    # The names go into the salt, which is the same for all rows, instead of being hashed with each.
    salt ^= int.from_bytes(blake2b(json.dumps(names).encode(), digest_size=8).digest()) & _NONNEGATIVE
    return f"xxhash64({', '.join([f'{salt}L', *(part for name in quoted for part in (f'isnull({name})', name))])})"


def digest_of(row: Row, rows: int) -> Digest:
    """Return the digest from a row that holds the aggregates of `digest_sums`."""
    a, b, c, d = (int(row[f"_digest_{n}"] or 0) for n in range(HALVES))
    return Digest(rows, (a, b, c, d))
