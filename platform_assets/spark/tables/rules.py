"""Rules as Spark asks them of one row; a condition that comes out null is broken."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from platform_assets.contracts import Rule


def applies(rule: Rule) -> Column:
    """Whether a rule judges a row."""
    return F.coalesce(F.expr(rule.where), F.lit(False)) if rule.where.strip() else F.lit(True)


def keeps(rule: Rule) -> Column:
    """Whether a row keeps a rule, as far as the row alone says so."""
    is_alone = rule.kind.is_condition
    kept = F.coalesce(F.expr(rule.kind.text), F.lit(False)) if is_alone else ~has_null(rule)
    return kept | ~applies(rule) if rule.where.strip() else kept


def has_null(rule: Rule) -> Column:
    """Whether a row lacks a value of the columns that a rule looks at."""
    lacks = F.lit(False)
    for name in rule.kind.columns:
        lacks = lacks | F.isnull(name)
    return lacks
