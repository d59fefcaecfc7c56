"""What a recomputation changed: the rows of some days before and after, in one Spark job for all of them."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.amounts import amounts
from platform_assets.records.differences import DayChange
from platform_assets.spark.compare.outer_union import outer_union
from platform_assets.spark.tables.row_hash import row_hash_sql

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
        frame.selectExpr(
            DAY,
            *(f"`{name}`" for name in contract.key),
            f"{row_hash_sql(others)} AS {side}",
            *(f"`{name}` AS {side}_{at}" for at, name in enumerate(names)),
        )
        for frame, side in ((before, "_before"), (after, "_after"))
    ]
    values = [name for side in ("_before", "_after") for name in (side, *(f"{side}_{at}" for at in range(len(names))))]
    # Each side has one row per key, so the greatest value is the only one.
    per_key = (
        outer_union(*sides).groupBy(DAY, *contract.key).agg(*(F.expr(f"max({name}) AS {name}") for name in values))
    )

    def total(side: str, at: int, name: str) -> str:
        value = f"CAST({side}_{at} AS {_WHOLE})" if name in whole else f"{side}_{at}"
        return f"CASE WHEN count({value}) > 0 THEN try_sum({value}) ELSE 0 END AS {side}_{at}"

    rows = (
        per_key.groupBy(DAY)
        .agg(
            F.expr("count_if(isnull(_before)) AS added"),
            F.expr("count_if(isnull(_after)) AS removed"),
            F.expr("count_if(_before != _after) AS changed"),
            *(F.expr(total(side, at, name)) for side in ("_before", "_after") for at, name in enumerate(names)),
        )
        .collect()
    )

    def change(row: Row) -> DayChange:
        sums = [{name: row[f"{side}_{at}"] for at, name in enumerate(names)} for side in ("_before", "_after")]
        known = [name for name in names if all(of_side[name] is not None for of_side in sums)]
        before, after = ({n: int(of_side[n]) if n in whole else of_side[n] for n in known} for of_side in sums)
        return DayChange(row["added"], row["removed"], row["changed"], before, after)

    return {row[DAY]: change(row) for row in rows}
