"""Rules on raw rows: which rows keep them, and by name which they break.

A rule is about a delivered record: it sees the columns of the raw contract and the day of the event, and nothing that
the platform has added. A tombstone is judged as the version that it tells, which lies on another day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule
from platform_assets.records.row_kinds import BREACH, RECORD
from platform_assets.records.rule_count import RuleCount
from platform_assets.spark.tables.rules import applies, keeps

_ROW = "_row"


def with_verdict(raw: DataFrame, rules: Sequence[Rule], voided: str | None, counted: Sequence[Rule] = ()) -> DataFrame:
    """Add `_good` to raw rows: whether a version competes for its key.

    A version competes if it keeps every rule, null counting as broken, or if it is void. It competes too if it breaks
    a rule whose breach takes the key back; such a record gets the kind `breach`.

    Args:
        raw: rows in `raw_schema`.
        rules: of the silver table that set rows aside.
        voided: the condition by which a row withdraws its key, if there is one.
        counted: those of them whose verdicts are wanted one by one, as `counts_of` has them.

    Raises:
        AnalysisException: a rule is no expression over what it sees.
    """
    kept, takes_back = F.lit(True), F.lit(False)
    for rule in rules:
        kept = kept & keeps(rule)
        takes_back = takes_back | ~keeps(rule) if rule.breach == "void" else takes_back
    verdicts = {
        name: verdict
        for rule in counted
        for name, verdict in zip(_names(rule), (~keeps(rule), applies(rule)), strict=True)
    }
    good = is_void(voided) | kept | takes_back
    if all(rule.breach == "skip" for rule in rules):
        return _judged(raw, {"_good": good, **verdicts})
    # In one go: a projection upon a projection of the same rules takes Spark's planner minutes.
    judged = _judged(raw, {"_good": good, "_takes_back": takes_back & ~is_void(voided), **verdicts})
    is_breach = F.col("_takes_back") & (F.col("_kind") == RECORD)
    return judged.withColumn("_kind", F.when(is_breach, BREACH).otherwise(F.col("_kind"))).drop("_takes_back")


def is_void(voided: str | None) -> Column:
    """Whether a row withdraws its key; of a tombstone, whether the version that it tells does."""
    return F.coalesce(F.expr(voided), F.lit(False)) if voided else F.lit(False)


def with_broken_rules(raw: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Raw rows with `_broken`: the names of the rules that a row breaks.

    Args:
        raw: rows in `raw_schema`.
        rules: of the silver table.
    """
    names = [F.when(~keeps(rule), F.lit(rule.name)) for rule in rules]
    return _judged(raw, {"_broken": F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")})


def counts_of(rules: Sequence[Rule], counted: Column) -> list[Column]:
    """Count rows that break each of some rules, and those that it judges, by names that `rule_counts` knows.

    Args:
        rules: that the rows were judged by, as `counted` of `with_verdict`.
        counted: whether a row counts at all.
    """
    return [F.count_if(counted & F.col(name)).alias(name) for rule in rules for name in _names(rule)]


def names_of(rules: Sequence[Rule]) -> list[str]:
    """Return the names of the counts of rules."""
    return [name for rule in rules for name in _names(rule)]


def rule_counts(rules: Sequence[Rule], figures: Mapping[str, int]) -> dict[str, RuleCount]:
    """Return what figures of a day say of each rule."""
    return {rule.name: RuleCount(*(figures.get(name, 0) for name in _names(rule))) for rule in rules}


def _names(rule: Rule) -> tuple[str, str]:
    return f"_breaks_{rule.name}", f"_judged_{rule.name}"


def _judged(raw: DataFrame, verdicts: Mapping[str, Column]) -> DataFrame:
    delivered = [column for column in raw.columns if column != DAY and not column.startswith("_")]
    # Spark takes the row apart again before anything runs: it is in one piece only where names are looked up.
    seen = raw.select(F.struct(*raw.columns).alias(_ROW), *delivered, F.col("_order_day").alias(DAY))
    named = [verdict.alias(name) for name, verdict in verdicts.items()]
    return seen.select(_ROW, *named).select(f"{_ROW}.*", *verdicts)
