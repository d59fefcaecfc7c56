"""What a recomputation changed: the rows of some days before and after, in one Spark job for all of them."""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.amounts import amounts
from platform_assets.records.differences import DayChange
from platform_assets.spark.tables.row_hash import row_hash

_WHOLE = "decimal(38,0)"
"""What whole numbers are summed as: the sum of a day's longs need not be a long."""


def day_changes(before: DataFrame, after: DataFrame, contract: Contract) -> dict[date, DayChange]:
    """Rows added, removed and changed by key, and the sums of all amounts, of every day that either frame has.

    An amount whose sum has no such type, before or after, is left out: what is only shown stops nobody.

    Args:
        before: content of the days until now; one row per key and day.
        after: their new content; one row per key and day.
    """
    names = amounts(contract)
    whole = {name for name in names if not contract.column(name).type.startswith("decimal")}
    others = [name for name in contract.column_names if name not in contract.key]
    sides = [
        frame.select(
            DAY,
            *contract.key,
            row_hash(others).alias(side),
            *(F.col(n).alias(f"{side}_{at}") for at, n in enumerate(names)),
        )
        for frame, side in ((before, "_before"), (after, "_after"))
    ]
    values = [name for side in sides for name in side.columns if name not in (DAY, *contract.key)]
    # Each side has one row per key, so the greatest value is the only one.
    per_key = (
        sides[0]
        .unionByName(sides[1], allowMissingColumns=True)
        .groupBy(DAY, *contract.key)
        .agg(*(F.max(name).alias(name) for name in values))
    )

    def total(side: str, at: int, name: str) -> Column:
        value = F.col(f"{side}_{at}").cast(_WHOLE) if name in whole else F.col(f"{side}_{at}")
        there = F.count(value) > 0
        return F.when(there, F.try_sum(value)).otherwise(F.lit(0)).alias(f"{side}_{at}")

    rows = (
        per_key.groupBy(DAY)
        .agg(
            F.count_if(F.isnull("_before")).alias("added"),
            F.count_if(F.isnull("_after")).alias("removed"),
            F.count_if(F.col("_before") != F.col("_after")).alias("changed"),
            *(total(side, at, name) for side in ("_before", "_after") for at, name in enumerate(names)),
        )
        .collect()
    )

    def change(row: Row) -> DayChange:
        sums = [{name: row[f"{side}_{at}"] for at, name in enumerate(names)} for side in ("_before", "_after")]
        known = [name for name in names if all(of_side[name] is not None for of_side in sums)]
        before, after = ({n: int(of_side[n]) if n in whole else of_side[n] for n in known} for of_side in sums)
        return DayChange(row["added"], row["removed"], row["changed"], before, after)

    return {row[DAY]: change(row) for row in rows}
