"""Sums of days by the values of some columns, where new content has others than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from platform_assets.contracts import DAY
from platform_assets.records.differences import Moves, Sum
from platform_assets.spark.compare.outer_union import outer_union

_EXACT = {"decimal": "`{0}`", "integer": "CAST(`{0}` AS decimal(38,0))", "long": "CAST(`{0}` AS decimal(38,0))"}
"""What columns are summed as, by type: the sum of a day's longs need not be a long. Others have no exact sum."""
_NOTHING = "CAST(NULL AS decimal(1,0))"


def moved_sums(
    before: DataFrame, after: DataFrame, columns: Sequence[str], by: tuple[str, ...], most: int
) -> dict[date, Moves]:
    """Sum columns of some days before and after, exactly, in one job.

    A column that had no value at all in the rows of a day before, as one that was added since, has not moved on it.

    Args:
        before: content of the days until now.
        after: their new content.
        columns: whole numbers or decimals of the new content.
        by: columns of both.
        most: keys of a day that are returned, in order.

    Returns:
        The days on which a sum differs.
    """
    keys = [f"_key_{at}" for at in range(len(by))]
    names = [f"_{side}_{at}" for at in range(len(columns)) for side in ("before", "after")]
    sides = [
        frame.selectExpr(
            DAY,
            f"{int(side == 'before')} AS _row",
            *(f"CAST(`{name}` AS string) AS {key}" for name, key in zip(by, keys, strict=True)),
            *(
                f"{_EXACT.get(types.get(name, ''), _NOTHING).format(name)} AS _{side}_{at}"
                for at, name in enumerate(columns)
            ),
        )
        for frame, side in ((before, "before"), (after, "after"))
        for types in [{column.name: column.dataType.typeName() for column in frame.schema}]
    ]
    rows = outer_union(*sides)
    sums = [F.expr(f"sum({name}) AS {name}") for name in names]
    differs = " OR ".join(
        f"(_there_{at} AND {_digits(f'_before_{at}')} <> {_digits(f'_after_{at}')})" for at in range(len(columns))
    )
    day = Window.partitionBy(DAY)
    there = {
        f"_there_{at}": (F.count(f"_before_{at}").over(day) > 0) | (F.sum("_rows").over(day) == 0)
        for at in range(len(columns))
    }
    moved = (
        rows.groupBy(DAY, *keys)
        .agg(F.expr("sum(_row) AS _rows"), *sums)
        .withColumns(there)
        .where(differs)
        .withColumns({"_keys": F.count(F.lit(1)).over(day), "_place": F.row_number().over(day.orderBy(*keys or [DAY]))})
    )
    found: dict[date, Moves] = {}
    for row in moved.where(F.col("_place") <= most).collect():
        moved_on = found.setdefault(row[DAY], Moves(row["_keys"]))
        key = tuple(row[name] for name in keys)
        for at, name in enumerate(columns):
            if row[f"_there_{at}"]:
                moved_on.pairs[Sum(name, by, key)] = row[f"_before_{at}"], row[f"_after_{at}"]
    return found


def _digits(name: str) -> str:
    """Write a sum as text without the zeros that only its type has; no type holds every two decimals exactly."""
    text = f"coalesce(CAST({name} AS string), '0')"
    return f"CASE WHEN {text} LIKE '%.%' THEN trim(TRAILING '.' FROM trim(TRAILING '0' FROM {text})) ELSE {text} END"
