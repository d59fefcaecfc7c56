"""Where two versions of one day disagree: the first keys, and columns. Only asked for where their digests differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from platform_assets.contracts import Contract
from platform_assets.records.differences import EXAMPLES, Key
from platform_assets.spark.compare.examples import as_text
from platform_assets.spark.compare.outer_union import outer_union
from platform_assets.spark.tables.row_hash import row_hash


@dataclass(frozen=True)
class Disagreement:
    """One key of which two versions of a day have other rows.

    Args:
        key: values of the table's key.
        columns: that differ, where both have the key.
        rows: how many rows the one and the other has of it.
    """

    key: Key
    columns: tuple[str, ...]
    rows: tuple[int, int]


def disagreements(left: DataFrame, right: DataFrame, contract: Contract) -> tuple[Disagreement, ...]:
    """The first keys, in order of their values, on which two versions of the same day disagree.

    Args:
        left: rows of the day.
        right: rows of the same day, made another time.
    """
    values = [name for name in contract.column_names if name not in contract.key]
    sides = [_side(rows, contract.row_key, values, at) for at, rows in enumerate((left, right))]
    both = outer_union(*sides).groupBy(*contract.row_key)
    names = [name for side in sides for name in side.columns if name not in contract.row_key]
    merged = both.agg(*(F.max(name).alias(name) for name in names))
    unequal = [~F.col(f"_0_{at}").eqNullSafe(F.col(f"_1_{at}")) for at in range(len(values))]
    differs = ~F.col("_rows_0").eqNullSafe(F.col("_rows_1"))
    for one_differs in unequal:
        differs = differs | one_differs
    shown = (
        merged.where(differs)
        .orderBy(*(F.asc_nulls_last(name) for name in contract.row_key))
        .limit(EXAMPLES)
        .select(
            F.array(*as_text(contract.row_key)).alias("key"), "_rows_0", "_rows_1", F.array(*unequal).alias("unequal")
        )
    )
    return tuple(_disagreement(row, values) for row in shown.collect())


def _side(rows: DataFrame, key: Sequence[str], values: Sequence[str], at: int) -> DataFrame:
    """One row per key: how many there are of it, and a hash of every other column."""
    hashes = [F.max(row_hash([name])).alias(f"_{at}_{n}") for n, name in enumerate(values)]
    return rows.groupBy(*key).agg(F.count(F.lit(1)).alias(f"_rows_{at}"), *hashes)


def _disagreement(row: Row, values: Sequence[str]) -> Disagreement:
    rows = row["_rows_0"] or 0, row["_rows_1"] or 0
    columns = [name for name, differs in zip(values, row["unequal"], strict=True) if differs and all(rows)]
    return Disagreement(tuple(row["key"]), tuple(columns), rows)
