"""From all versions of a key to the one that counts.

The total order of the versions of a key is (version, row hash, day): `version` is `updated_at`, or the arrival date
where the source has none. It depends only on what was delivered, never on when or how it was ingested. Only versions
that keep the rules are in it, whatever day they lie on; a void says nothing that a rule could be about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule
from platform_assets.planning.parts import NO_PARTS
from platform_assets.records.row_kinds import RECORD, TOMBSTONE, VOID
from platform_assets.spark.raw.rules import with_verdict
from platform_assets.spark.tables.parts import SHARE, in_parts

ORDER = ("_version", "_row_hash", "_order_day")
"""Raw columns that order the versions of a key, most significant first."""


def greatest(
    raw: DataFrame, key: Sequence[str], parts: Mapping[date, int] = NO_PARTS, *, heavy: bool = False
) -> DataFrame:
    """The greatest version of each key and day, whatever its kind; each day lies in one Spark partition, or its parts.

    Args:
        raw: rows that count.
        key: columns of the natural key.
        parts: of each large day.
        heavy: a key has so many versions that they are not to meet in one task: every task sends on the greatest of
            what it has read, and how days lie afterwards is not said.
    """
    order = [F.desc(name) for name in ORDER]
    if heavy:  # Spark itself looks for the first of each key before it shuffles, where nothing else asks it to
        dealt, by = raw, [DAY, *key]
    elif parts:
        dealt, by = in_parts(raw, parts, key), [DAY, *key, SHARE]
    else:
        dealt, by = raw.repartition(DAY), [DAY, *key]
    ranked = dealt.withColumn("_rank", F.row_number().over(SortWindow.partitionBy(*by).orderBy(*order)))
    return ranked.where(F.col("_rank") == 1).drop("_rank", SHARE)


def row_balances(
    raw: DataFrame, key: Sequence[str], rules: Sequence[Rule], voided: str | None
) -> dict[date, dict[str, int]]:
    """What must become of the rows of each raw day, counted without building the result.

    Args:
        raw: rows that count, tombstones included.
        key: columns of the natural key.
        rules: of the silver table.
        voided: the column that withdraws a key, if there is one.

    Returns:
        By day: `raw` rows, `quarantined` rows, `voided` keys, the `expected` rows that stay, all `keys`, those of which
        no version is good, `keys_quarantined`, and how many versions a key has at most, `most_versions`. Counted from
        the keys and versions alone and independently of `greatest`, so that the two can be held against each other.
    """
    is_row = F.col("_kind") != TOMBSTONE
    judged = with_verdict(raw, rules, voided).select(DAY, *key, "_kind", *ORDER, "_good")
    newest = {
        kind: F.max(F.when(F.col("_good") & (F.col("_kind") == kind), F.col("_version"))).alias(kind)
        for kind in (RECORD, VOID, TOMBSTONE)
    }
    per_key = judged.groupBy(DAY, *key).agg(
        F.count(F.lit(1)).alias("versions"),
        F.count_if(is_row).alias("rows"),
        F.count_if(is_row & ~F.col("_good")).alias("quarantined"),
        *newest.values(),
    )
    # Only versions of the same instant need the rest of the order, and only few keys have such.
    tied = (
        F.col(RECORD).eqNullSafe(F.greatest(VOID, TOMBSTONE)) | F.col(VOID).eqNullSafe(F.greatest(RECORD, TOMBSTONE))
    ) & F.isnotnull(F.coalesce(VOID, TOMBSTONE))
    top = F.greatest(RECORD, VOID, TOMBSTONE)
    counts = (
        per_key.withColumn("tied", F.coalesce(tied, F.lit(False)))
        .groupBy(DAY)
        .agg(
            F.sum("rows").alias("raw"),
            F.max("versions").alias("most_versions"),
            F.sum("quarantined").alias("quarantined"),
            F.count_if(~F.col("tied") & (F.col(RECORD) == top)).alias("kept"),
            F.count_if(~F.col("tied") & (F.col(VOID) == top)).alias("voided"),
            F.count_if(F.col("rows") > 0).alias("keys"),
            F.count_if((F.col("quarantined") > 0) & F.isnull(F.coalesce(RECORD, VOID, TOMBSTONE))).alias(
                "keys_quarantined"
            ),
            F.bool_or("tied").alias("tied"),
        )
        .collect()
    )
    balances = {
        row[DAY]: {
            "raw": row["raw"],
            "quarantined": row["quarantined"],
            "voided": row["voided"],
            "expected": row["kept"],
            "keys": row["keys"],
            "keys_quarantined": row["keys_quarantined"],
            "most_versions": row["most_versions"],
        }
        for row in counts
    }
    if any(row["tied"] for row in counts):
        ties = per_key.where(tied).select(DAY, *key)
        for day, stay, go in _tied_fates(judged, ties, key):
            balances[day]["expected"] += stay
            balances[day]["voided"] += go
    return balances


def _tied_fates(judged: DataFrame, ties: DataFrame, key: Sequence[str]) -> list[tuple[date, int, int]]:
    """Of the keys whose newest versions are of one instant: how many stay and how many are voided, by day."""
    tops = (
        judged.where("_good")
        .join(F.broadcast(ties), [DAY, *key], "left_semi")
        .groupBy(DAY, *key)
        .agg(F.max_by("_kind", F.struct(*ORDER)).alias("top"))
    )
    rows = tops.groupBy(DAY).agg(
        F.count_if(F.col("top") == RECORD).alias("kept"), F.count_if(F.col("top") == VOID).alias("voided")
    )
    return [(row[DAY], row["kept"], row["voided"]) for row in rows.collect()]
