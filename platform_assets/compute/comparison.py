"""What a recomputation changed: the rows of some days before and after, in one Spark job for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from platform_assets.compute.differences import DayChange
from platform_assets.compute.digests import row_hash
from platform_assets.contracts import DAY, Contract

_WHOLE = "decimal(38,0)"
"""What whole numbers are summed as: the sum of a day's longs need not be a long."""


def amounts(contract: Contract) -> tuple[str, ...]:
    """Columns whose sums tell something: decimals and whole numbers that neither name a thing nor are sensitive."""
    return tuple(
        column.name
        for column in contract.columns
        if column.type.startswith(("decimal", "int", "long"))
        and column.name not in contract.key
        and not column.name.endswith("_id")
        and not column.sensitive
    )


def day_changes(before: DataFrame, after: DataFrame, contract: Contract) -> dict[date, DayChange]:
    """Rows added, removed and changed by key, and the sums of all amounts, of every day that either frame has.

    Args:
        before: content of the days until now; one row per key and day.
        after: their new content; one row per key and day.
        contract: of the table.
    """
    names = amounts(contract)
    others = [name for name in contract.column_names if name not in contract.key]
    sides = _side(before, "before", contract.key, others, names).unionByName(
        _side(after, "after", contract.key, others, names), allowMissingColumns=True
    )
    figures = [f"{side}_{n}" for side in ("before", "after") for n in range(len(names))]
    # Each side has one row per key, so the greatest value is the only one.
    per_key = sides.groupBy(DAY, *contract.key).agg(
        *(F.max(name).alias(name) for name in ("before", "after", *figures))
    )
    rows = (
        per_key.groupBy(DAY)
        .agg(
            F.count_if(F.isnull("before")).alias("added"),
            F.count_if(F.isnull("after")).alias("removed"),
            F.count_if(F.col("before") != F.col("after")).alias("changed"),
            *(F.sum(name).alias(name) for name in figures),
        )
        .collect()
    )
    whole = {name for name in names if not contract.column(name).type.startswith("decimal")}

    def sums(row: Row, side: str) -> dict[str, int | Decimal]:
        found = {name: row[f"{side}_{n}"] or Decimal(0) for n, name in enumerate(names)}
        return {name: int(value) if name in whole else value for name, value in found.items()}

    return {
        row[DAY]: DayChange(row["added"], row["removed"], row["changed"], sums(row, "before"), sums(row, "after"))
        for row in rows
    }


def _side(frame: DataFrame, name: str, key: Sequence[str], others: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Key, hash of the other columns, and amounts of one side, named after it."""
    figures = [
        F.col(amount).cast(_WHOLE).alias(f"{name}_{n}")
        if dict(frame.dtypes)[amount] in ("int", "bigint")
        else F.col(amount).alias(f"{name}_{n}")
        for n, amount in enumerate(names)
    ]
    return frame.select(DAY, *key, row_hash(others).alias(name), *figures)
