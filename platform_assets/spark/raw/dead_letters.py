"""Rows that did not get through: refused at parsing, or quarantined by a rule. One layout for both."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule
from platform_assets.records.row_kinds import BREACH, ERASED, TOMBSTONE
from platform_assets.spark.raw.late_rows import is_late
from platform_assets.spark.raw.payloads import payload
from platform_assets.spark.raw.rules import with_broken_rules, with_verdict
from platform_assets.spark.raw.versions import PLACE


def quarantined(raw: DataFrame, columns: Sequence[str], rules: Sequence[Rule], voided: str | None) -> DataFrame:
    """The raw rows that break a rule, with the names of all rules they break."""
    is_broken = ~F.col("_good") | (F.col("_kind") == BREACH)
    broken = with_verdict(raw, rules, voided).where((F.col("_kind") != TOMBSTONE) & is_broken)
    return with_broken_rules(broken.drop("_good"), rules).select(
        "_arrival",
        F.array_join("_broken", ", ").alias("_reason"),
        payload(broken, columns).alias("_payload"),
        DAY,
    )


def is_refused() -> Column:
    """Tell whether a row, as `parse` returns it, was refused."""
    return F.isnull(DAY) & ~is_late() & (F.col("_kind") != ERASED)


def commonest_faults(parsed: DataFrame, arrivals: Collection[str], pattern: str) -> dict[str, str]:
    """Return the first fault of most refused rows of each arrival, of several the last by name.

    Args:
        parsed: rows as `parse` returns them.
        arrivals: paths.
        pattern: of a fault without its value, with two groups.
    """
    fault = F.regexp_replace("_kind", f"(?s)^{pattern}.*$", "$1: $2")
    refused = parsed.where(is_refused() & F.col("_arrival").isin(list(arrivals)))
    counts = refused.groupBy("_arrival", fault.alias("fault")).count().collect()
    return {row["_arrival"]: row["fault"] for row in sorted(counts, key=lambda row: (row["count"], row["fault"]))}


def refused_rows(parsed: DataFrame) -> DataFrame:
    """Return the rows that `parse` refused, of some whole files, as `REFUSED` has them."""
    files = parsed.where(is_refused()).select("_arrival").distinct()
    of_these = _numbered(parsed.join(F.broadcast(files), "_arrival", "left_semi")).where(is_refused())
    return of_these.withColumn("_attempts", F.lit(1)).selectExpr(*_LETTER)


def replayed_rows(parsed: DataFrame, tried: DataFrame, before: str) -> DataFrame:
    """Return the rows of parsed files that are replayed, as arrivals of their own, each in the place that it first had.

    Args:
        parsed: all rows of the files.
        tried: the rows that are replayed: `_arrival`, `_row`, `_place` and `_attempts`.
        before: stands before the path of the file in the name of its arrival.
    """
    found = _numbered(parsed).drop(PLACE).join(F.broadcast(tried), ["_arrival", "_row"])
    return found.withColumn("_arrival", F.concat(F.lit(before), "_arrival")).select(*parsed.columns)


def refused_again(replayed: DataFrame, tried: DataFrame, before: str) -> DataFrame:
    """Return the rows of `replayed_rows` that were refused once more, as rows of the files that they came with."""
    refused = replayed.where(is_refused()).withColumn("_arrival", F.replace("_arrival", F.lit(before), F.lit("")))
    again = refused.join(F.broadcast(tried), ["_arrival", PLACE])
    return again.withColumn("_attempts", F.col("_attempts") + 1).selectExpr(*_LETTER)


def _numbered(parsed: DataFrame) -> DataFrame:
    in_file = SortWindow.partitionBy("_arrival").orderBy(PLACE)
    return parsed.withColumn("_row", F.row_number().over(in_file).cast("long"))


_LETTER = (
    *("_arrival", "_kind AS _reason", "_rescued AS _payload", "_row", PLACE, "_attempts"),
    f"_arrival_date AS {DAY}",
)
