"""Where two versions of some days disagree, key by key and column by column, in one shuffle of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.checks import EXACT, Tolerance
from platform_assets.records.differences import EXAMPLES, Key, KeyCounts
from platform_assets.spark.compare.examples import as_text
from platform_assets.spark.compare.outer_union import outer_union
from platform_assets.spark.tables.reading import kept_frames
from platform_assets.spark.tables.row_hash import row_hash_sql

_LOW_HALF = 0xFFFFFFFF


@dataclass(frozen=True)
class Disagreement:
    """One key of which two versions of a day have other rows.

    Args:
        day: on which.
        key: values of the table's key.
        rows: how many rows the left and the right version has of it.
        values: as text, left and right, of the columns that differ; none unless both versions have the key.
    """

    day: date
    key: Key
    rows: tuple[int, int]
    values: Mapping[str, tuple[str | None, str | None]]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that differ."""
        return tuple(self.values)


def within_sql(left: str, right: str, tolerance: Tolerance) -> str:
    """Return SQL that is true where two figures are equal or within a tolerance, and never null."""
    if tolerance.is_exact:
        return f"{left} <=> {right}"
    apart, share = f"abs(try_subtract({left}, {right}))", f"{tolerance.percent / 100}BD"
    bounds = [f"{tolerance.absolute}BD", *(f"{share} * abs({side})" for side in (left, right) if tolerance.percent)]
    return f"({left} <=> {right} OR coalesce({' OR '.join(f'{apart} <= {bound}' for bound in bounds)}, false))"


def disagreements(left: DataFrame, right: DataFrame, contract: Contract) -> tuple[Disagreement, ...]:
    """Return the first keys, in order of their values, on which two versions of the same days disagree.

    Args:
        right: rows of the same days, made another time.
    """
    values = [name for name in contract.column_names if name not in contract.key]
    return _first(differing_keys(left, right, contract.row_key, values), contract.row_key, values, EXAMPLES)


def key_differences(
    left: DataFrame, right: DataFrame, key: Sequence[str], values: Sequence[str], tolerance: Tolerance, most: int
) -> tuple[dict[date, KeyCounts], tuple[Disagreement, ...]]:
    """Count the keys that differ on each day, and return the first of each kind.

    Args:
        key: columns that name a row within its day.
        values: columns to compare; of one type on both sides.
    """
    with kept_frames() as keep:
        found = keep(differing_keys(left, right, key, values, tolerance))
        kinds = {"missing_left": "isnull(_rows_0)", "missing_right": "isnull(_rows_1)"}
        kinds["different"] = "isnotnull(_rows_0) AND isnotnull(_rows_1)"
        rows = found.groupBy(DAY).agg(*(F.expr(f"count_if({is_so})").alias(kind) for kind, is_so in kinds.items()))
        counts = {row[DAY]: KeyCounts(*(row[kind] for kind in kinds)) for row in rows.collect()}
        return counts, _first(found, key, values, most) if counts and most else ()


def differing_keys(
    left: DataFrame, right: DataFrame, key: Sequence[str], values: Sequence[str], tolerance: Tolerance = EXACT
) -> DataFrame:
    """Return one row for each key that differs, with `_rows_0` and `_0_n` of the left side, `_rows_1` and `_1_n`.

    `_unequal` says which of the values differ. A key that one side has in several rows is compared by their number,
    their greatest values and, where no figure may differ, a hash of all.
    """
    by = [*dict.fromkeys((DAY, *key))]
    sides = [_side(rows, by, values, at) for at, rows in enumerate((left, right))]
    both = outer_union(*sides).groupBy(*by)
    names = [name for side in sides for name in side.columns if name not in by]
    merged = both.agg(*(F.expr(f"max({name})").alias(name) for name in names))
    numbers = {field.name for field in left.schema.fields if isinstance(field.dataType, NumericType)}
    allowed = (tolerance if name in numbers else EXACT for name in values)
    unequal = [f"NOT ({within_sql(f'_0_{n}', f'_1_{n}', one)})" for n, one in enumerate(allowed)]
    differs = ["NOT (_rows_0 <=> _rows_1)", *unequal]
    differs += ["(_rows_0 > 1 AND NOT (_hash_0 <=> _hash_1))"] if tolerance.is_exact else []
    return merged.withColumn("_unequal", F.expr(f"array({', '.join(unequal)})" if unequal else "array(false)")).where(
        " OR ".join(differs)
    )


def _side(rows: DataFrame, by: Sequence[str], values: Sequence[str], at: int) -> DataFrame:
    """Return one row per key: how many there are of it, a hash of them, and the greatest value of each column."""
    return rows.groupBy(*by).agg(
        F.expr(f"count(1) AS _rows_{at}"),
        F.expr(f"sum({row_hash_sql(values)} & {_LOW_HALF}L) AS _hash_{at}"),
        *(F.expr(f"max(`{name}`) AS _{at}_{n}") for n, name in enumerate(values)),
    )


def _first(found: DataFrame, key: Sequence[str], values: Sequence[str], most: int) -> tuple[Disagreement, ...]:
    kind = F.expr("CASE WHEN isnull(_rows_0) THEN 0 WHEN isnull(_rows_1) THEN 1 ELSE 2 END")
    in_order = [F.asc_nulls_last(name) for name in dict.fromkeys((DAY, *key))]
    ranked = found.withColumn("_kind", kind).withColumn(
        "_rank", F.row_number().over(SortWindow.partitionBy("_kind").orderBy(*in_order))
    )
    texts = [F.array(*as_text(f"_{at}_{n}" for n in range(len(values)))).alias(f"_values_{at}") for at in (0, 1)]
    shown = ranked.where(F.col("_rank") <= most).select(
        DAY, "_kind", "_rank", F.array(*as_text(key)).alias("_key"), "_rows_0", "_rows_1", "_unequal", *texts
    )
    rows = sorted(shown.collect(), key=lambda row: (row["_kind"], row["_rank"]))
    return tuple(_disagreement(row, values) for row in rows)


def _disagreement(row: Row, values: Sequence[str]) -> Disagreement:
    rows = row["_rows_0"] or 0, row["_rows_1"] or 0
    pairs = zip(values, row["_unequal"], row["_values_0"], row["_values_1"], strict=False)
    differing = {name: (left, right) for name, differs, left, right in pairs if differs and all(rows)}
    return Disagreement(row[DAY], tuple(row["_key"]), rows, differing)
