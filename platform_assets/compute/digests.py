"""The digest as a Spark aggregate.

Every column is hashed together with a flag that says whether it is null, because `xxhash64` skips nulls and would
take `(1, NULL)` and `(NULL, 1)` for the same row. Two salts and 32-bit halves keep the sums within a bigint for
two billion rows a day.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from platform_assets.planning.digests import HALVES, Digest

_SALTS = (7_046_029_254_386_353_131, 2_870_177_450_012_600_261)
_LOW_HALF = 0xFFFFFFFF


def row_hash(columns: Sequence[str], salt: int = _SALTS[0]) -> Column:
    """A 64-bit hash of a row's columns that tells nulls and neighbouring columns apart."""
    parts = [part for name in columns for part in (F.isnull(name), F.col(name))]
    return F.xxhash64(F.lit(salt), *parts)


def digest_sums(columns: Sequence[str]) -> list[Column]:
    """The aggregates behind a digest, named `_digest_0` and so on; the row count is the caller's own."""
    sums: list[Column] = []
    for salt in _SALTS:
        hashed = row_hash(columns, salt)
        sums += [
            F.sum(hashed.bitwiseAND(F.lit(_LOW_HALF))),
            F.sum(F.shiftrightunsigned(hashed, 32)),
        ]
    return [total.alias(f"_digest_{n}") for n, total in enumerate(sums)]


def digest_of(row: Row, rows: int) -> Digest:
    """The digest from a row that holds the aggregates of `digest_sums`."""
    a, b, c, d = (int(row[f"_digest_{n}"] or 0) for n in range(HALVES))
    return Digest(rows, (a, b, c, d))
