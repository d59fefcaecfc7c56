"""From all versions of a key to the one that counts.

The total order of the versions of a key is (version, row hash, day): `version` is `updated_at`, or the arrival date
where the source has none. It depends only on what was delivered, never on when or how it was ingested.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule

RECORD, VOID, TOMBSTONE = "record", "void", "tombstone"
ORDER = ("_version", "_row_hash", "_order_day")
"""Raw columns that order the versions of a key, most significant first."""


def broken_rules(rules: Sequence[Rule]) -> Column:
    """Names of the rules a raw row breaks; null counts as broken, tombstones are no rows."""
    names = [F.when(~F.coalesce(F.expr(rule.expression), F.lit(False)), F.lit(rule.name)) for rule in rules]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def keeps_rules(rules: Sequence[Rule]) -> Column:
    """Whether a raw row keeps every rule; tombstones do."""
    kept = F.lit(True)
    for rule in rules:
        kept = kept & F.coalesce(F.expr(rule.expression), F.lit(False))
    return (F.col("_kind") == TOMBSTONE) | kept


def greatest(raw: DataFrame, key: Sequence[str]) -> DataFrame:
    """The greatest version of each key and day, whatever its kind; each day ends up in one Spark partition."""
    newest_first = SortWindow.partitionBy(DAY, *key).orderBy(*(F.desc(name) for name in ORDER))
    ranked = raw.repartition(DAY).withColumn("_rank", F.row_number().over(newest_first))
    return ranked.where(F.col("_rank") == 1).drop("_rank")


def fates(raw: DataFrame, key: Sequence[str], rules: Sequence[Rule]) -> dict[date, dict[str, int]]:
    """What must become of the rows of each raw day, counted without building the result.

    Returns:
        By day: `raw` rows, `quarantined` rows, `voided` keys, and the `expected` rows that stay. Counted from the
        keys alone and independently of `greatest`, so that the two can be held against each other.
    """
    good = keeps_rules(rules)
    is_row = F.col("_kind") != TOMBSTONE
    judged = raw.select(DAY, *key, "_kind", *ORDER, good.alias("_good"))
    per_key = judged.groupBy(DAY, *key).agg(
        F.count_if(is_row).alias("rows"),
        F.count_if(is_row & ~F.col("_good")).alias("quarantined"),
        F.count_if(is_row & F.col("_good")).alias("good"),
        F.bool_or(F.col("_kind") != RECORD).alias("special"),
    )
    counts = (
        per_key.groupBy(DAY)
        .agg(
            F.sum("rows").alias("raw"),
            F.sum("quarantined").alias("quarantined"),
            F.count_if((F.col("good") > 0) & ~F.col("special")).alias("plain"),
            F.count_if("special").alias("special"),
        )
        .collect()
    )
    found = {
        row[DAY]: {
            "raw": row["raw"],
            "quarantined": row["quarantined"],
            "voided": 0,
            "expected": row["plain"],
        }
        for row in counts
    }
    if any(row["special"] for row in counts):
        for day, kept, voided in _special_fates(judged, key):
            found[day]["expected"] += kept
            found[day]["voided"] = voided
    return found


def _special_fates(judged: DataFrame, key: Sequence[str]) -> list[tuple[date, int, int]]:
    """Of the keys with a void or a tombstone: how many stay and how many are voided, by day."""
    special = judged.where(F.col("_kind") != RECORD).select(DAY, *key).distinct()
    order = F.struct(*ORDER)
    tops = (
        judged.where("_good")
        .join(F.broadcast(special), [DAY, *key], "left_semi")
        .groupBy(DAY, *key)
        .agg(F.max_by("_kind", order).alias("top"))
    )
    rows = tops.groupBy(DAY).agg(
        F.count_if(F.col("top") == RECORD).alias("kept"),
        F.count_if(F.col("top") == VOID).alias("voided"),
    )
    return [(row[DAY], row["kept"], row["voided"]) for row in rows.collect()]
