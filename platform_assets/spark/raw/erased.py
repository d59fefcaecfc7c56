"""Rows of erased keys: told by workers from hashes, so that neither value nor secret is in a plan, a log or the UI."""

from __future__ import annotations

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.records import erased_keys
from platform_assets.records.erased_keys import AS_DELIVERED, ErasedKeys
from platform_assets.records.row_kinds import ERASED

# Workers of a cluster have Python, and need not have this package.
cloudpickle.register_pickle_by_value(erased_keys)

_FROM = ("_arrival", "_arrival_date", "_place")


def is_erased(rows: DataFrame, keys: ErasedKeys) -> Column:
    """Return whether rows are of an erased key, by their fields or by the text that was kept of them.

    Args:
        rows: of any table; columns that they lack say nothing.
    """

    def of_erased_key(*texts: str | None) -> bool:
        return keys.has_row(*texts)

    nothing = F.lit(None).cast("string")
    texts = [F.col(name).cast("string") if name in rows.columns else nothing for name in (*keys.fields, *AS_DELIVERED)]
    return F.udf(of_erased_key, "boolean", useArrow=False)(*texts)


def without_erased(parsed: DataFrame, keys: ErasedKeys | None) -> DataFrame:
    """Return parsed rows; those of erased keys are of kind `erased` and keep nothing but where they came from.

    Args:
        parsed: as `parse` returns them.
        keys: that were erased; None where nothing was.
    """
    if keys is None:
        return parsed
    marked = parsed.withColumn("_is_erased", is_erased(parsed, keys))
    fields = [
        F.col(name) if name in _FROM else F.when(~F.col("_is_erased"), F.col(name)).alias(name)
        for name in parsed.columns
        if name != "_kind"
    ]
    kind = F.when(F.col("_is_erased"), F.lit(ERASED)).otherwise(F.col("_kind")).alias("_kind")
    return marked.select(*fields, kind).select(*parsed.columns)


def erased_rows(parsed: DataFrame) -> dict[str, int]:
    """Return how many rows of each arrival were dropped."""
    counts = parsed.where(F.col("_kind") == ERASED).groupBy("_arrival").count().collect()
    return {row["_arrival"]: row["count"] for row in counts}
