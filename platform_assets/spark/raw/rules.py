"""Rules on raw rows: which rows keep them, and by name which they break.

A rule is about a delivered record: it sees the columns of the raw contract and the day of the event, and nothing that
the platform has added. A tombstone is judged as the version that it tells, which lies on another day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.records.row_kinds import BREACH, RECORD

JUDGED = "_judged_"
_ROW = "_row"


def with_verdict(raw: DataFrame, rules: Sequence[Rule], voided: str | None, counted: Sequence[Rule] = ()) -> DataFrame:
    """Add `_good` to raw rows: whether a version competes for its key.

    A version competes if it keeps every rule, null counting as broken, or if it is void. It competes too if it breaks
    a rule whose breach takes the key back; such a record gets the kind `breach`.

    Args:
        raw: rows in `raw_schema`.
        rules: of the silver table that set rows aside.
        voided: the condition by which a row withdraws its key, if there is one.
        counted: those of them whose verdicts are wanted one by one, as `verdicts` has them.

    Raises:
        AnalysisException: a rule is no expression over what it sees.
    """
    kept, takes_back = F.lit(True), F.lit(False)
    for rule in rules:
        kept = kept & keeps(rule)
        takes_back = takes_back | ~keeps(rule) if rule.breach == "void" else takes_back
    one_by_one = {name: verdict for rule in counted for name, verdict in verdicts(rule).items()}
    good = is_void(voided) | kept | takes_back
    if all(rule.breach == "skip" for rule in rules):
        return _judged(raw, {"_good": good, **one_by_one})
    # In one go: a projection upon a projection of the same rules takes Spark's planner minutes.
    judged = _judged(raw, {"_good": good, "_takes_back": takes_back & ~is_void(voided), **one_by_one})
    is_breach = F.col("_takes_back") & (F.col("_kind") == RECORD)
    return judged.withColumn("_kind", F.when(is_breach, BREACH).otherwise(F.col("_kind"))).drop("_takes_back")


def is_void(voided: str | None) -> Column:
    """Return whether a row withdraws its key; of a tombstone, whether the version that it tells does."""
    return F.coalesce(F.expr(voided), F.lit(False)) if voided else F.lit(False)


def with_broken_rules(raw: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return raw rows with `_broken`: the names of the rules that a row breaks.

    Args:
        raw: rows in `raw_schema`.
        rules: of the silver table.
    """
    names = [F.when(~keeps(rule), F.lit(rule.name)) for rule in rules]
    return _judged(raw, {"_broken": F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")})


def applies(rule: Rule) -> Column:
    """Return whether a rule judges a row."""
    return F.coalesce(F.expr(rule.where), F.lit(False)) if rule.where.strip() else F.lit(True)


def keeps(rule: Rule) -> Column:
    """Return whether a row keeps a rule, as far as the row alone says so; a condition that comes out null is broken."""
    is_alone = rule.kind.is_condition
    kept = F.coalesce(F.expr(rule.kind.text), F.lit(False)) if is_alone else ~has_null(rule)
    return kept | ~applies(rule) if rule.where.strip() else kept


def has_null(rule: Rule) -> Column:
    """Return whether a row lacks a value of the columns that a rule looks at."""
    lacks = F.lit(False)
    for name in rule.kind.columns:
        lacks = lacks | F.isnull(name)
    return lacks


def verdicts(rule: Rule) -> dict[str, Column]:
    """Return whether a row breaks a rule, and whether it is judged, by the names that `rule_counts` knows."""
    return {f"_breaks_{rule.name}": ~keeps(rule), f"{JUDGED}{rule.name}": applies(rule)}


def rule_counts(rules: Sequence[Rule], figures: Mapping[str, int]) -> dict[str, RuleCount]:
    """Return what figures of a day say of each rule."""
    return {r.name: RuleCount(*(figures.get(f"_{what}_{r.name}", 0) for what in ("breaks", "judged"))) for r in rules}


def _judged(raw: DataFrame, verdicts: Mapping[str, Column]) -> DataFrame:
    delivered = [column for column in raw.columns if column != DAY and not column.startswith("_")]
    # Spark takes the row apart again before anything runs: it is in one piece only where names are looked up.
    seen = raw.select(F.struct(*raw.columns).alias(_ROW), *delivered, F.col("_order_day").alias(DAY))
    named = [verdict.alias(name) for name, verdict in verdicts.items()]
    return seen.select(_ROW, *named).select(f"{_ROW}.*", *verdicts)
