"""Rows that did not get through: refused at parsing, or quarantined by a rule. One layout for both."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule
from platform_assets.records.row_kinds import BREACH, ERASED, TOMBSTONE
from platform_assets.spark.raw.late_rows import is_late
from platform_assets.spark.raw.payloads import payload
from platform_assets.spark.raw.rules import with_broken_rules, with_verdict


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


def refused_rows(parsed: DataFrame) -> DataFrame:
    """The rows that `parse` refused; their day is their arrival date, since they have none that can be trusted."""
    return parsed.where(F.isnull(DAY) & ~is_late() & (F.col("_kind") != ERASED)).select(
        "_arrival",
        F.col("_kind").alias("_reason"),
        F.col("_rescued").alias("_payload"),
        F.col("_arrival_date").alias(DAY),
    )
