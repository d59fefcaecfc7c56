"""Reconciliation in Spark: staged days against the rows they were made from, all days of a batch in one job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import date

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Amount, Reconciliation
from platform_assets.contracts.checks import Tolerance
from platform_assets.records.differences import EXAMPLES, Difference, Differences, Figures
from platform_assets.spark.compare.checksums import differing_days
from platform_assets.spark.compare.examples import as_text
from platform_assets.spark.compare.outer_union import outer_union
from platform_assets.spark.compare.row_diff import within_sql
from platform_assets.spark.windows import Windowed

_MERGED = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max}
_KINDS = ("missing", "extra", "unequal")


def differences(
    ours: DataFrame, theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]
) -> dict[date, Differences]:
    """Compare the figures of every key on every day.

    In sums and counts a key that is absent counts as zero, and so does a null; in other figures a null equals a null
    and nothing else. Keys are looked at one by one only on days whose checksums differ, or where a figure has none.

    Args:
        ours: rows of the days as staged.
        theirs: rows of the upstream table that those days read, at the release they were read at.
        declared: keys and figures.

    Returns:
        One value per day that differs.
    """
    differing = differing_days(ours, theirs, declared, days)
    suspects = days if differing is None else differing
    if not suspects:
        return {}
    by_key = compared(ours, theirs, declared, suspects)
    counts = by_key.groupBy(DAY).agg(
        F.count(F.lit(1)).alias("keys"),
        *(F.count_if(F.col("_kind") == kind).alias(kind) for kind in _KINDS),
        *(
            _total(declared, amount, at, f"_{side}_{n}")
            for at, side in enumerate(("ours", "theirs"))
            for n, amount in _numbered(declared)
        ),
    )
    by_day: dict[date, Differences] = {}
    for row in counts.collect():
        mine, other = (tuple(row[f"_{side}_{n}"] for n, _ in _numbered(declared)) for side in ("ours", "theirs"))
        if found := Differences(**{name: row[name] for name in ("keys", *_KINDS)}):
            by_day[row[DAY]] = replace(found, ours=mine, theirs=other)
    examples = _examples(by_key, declared) if by_day else {}
    return {day: replace(of_day, examples=tuple(examples[day])) for day, of_day in by_day.items()}


def compared(
    ours: DataFrame, theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]
) -> DataFrame:
    """One row per day and key with the figures of both tables; `_kind` says how they differ, null where they do not.

    Raises:
        AnalysisException: an amount is no aggregate over the rows of its side.
    """
    ours = ours.where(F.col(DAY).isin(sorted(days)))
    ours = ours.groupBy(DAY, *declared.by).agg(
        F.lit(True).alias("_ours"), *(F.expr(amount.ours).alias(f"_ours_{n}") for n, amount in _numbered(declared))
    )
    upstream = _upstream(theirs, declared, days).withColumn("_theirs", F.lit(True))
    names = [f"_{side}_{n}" for side in ("ours", "theirs") for n, _ in _numbered(declared)]
    # Each side has one row per key, so the greatest value is the only one.
    both = (
        outer_union(ours, upstream)
        .groupBy(DAY, *declared.by)
        .agg(*(F.max(name).alias(name) for name in ("_ours", "_theirs", *names)))
    )
    equal = F.lit(True)
    for n, amount in _numbered(declared):
        equal = equal & _equal(n, amount, declared.allowed)
    kind = F.when(F.isnull("_ours"), "missing").when(F.isnull("_theirs"), "extra").otherwise("unequal")
    return both.withColumn("_kind", F.when(~equal, kind))


def _equal(n: int, amount: Amount, tolerance: Tolerance) -> Column:
    zero = ", 0" if amount.is_additive else ""
    return F.expr(within_sql(f"coalesce(_ours_{n}{zero})", f"coalesce(_theirs_{n}{zero})", tolerance))


def _total(declared: Reconciliation, amount: Amount, side: int, name: str) -> Column:
    """Return the figure of a whole day from those of its keys; null where these say nothing of it."""
    aggregate = amount.sides[side]
    if declared.by and aggregate is None:
        return F.lit(None).alias(name)
    total = _MERGED[aggregate.function](name) if declared.by and aggregate else F.max(name)
    return (F.coalesce(total, F.lit(0)) if amount.is_additive else total).alias(name)


def _upstream(theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]) -> DataFrame:
    """Their figures by day and key. Each day is summed before it is spread over the windows that hold it."""
    frame = theirs.frame if isinstance(theirs, Windowed) else theirs.where(F.col(DAY).isin(sorted(days)))
    daily = frame.groupBy(DAY, *declared.by).agg(
        *(F.expr(amount.theirs).alias(f"_theirs_{n}") for n, amount in _numbered(declared))
    )
    if not isinstance(theirs, Windowed):
        return daily
    merged: list[Column] = []
    for n, amount in _numbered(declared):
        _, aggregate = amount.sides
        assert aggregate is not None
        merged.append(_MERGED[aggregate.function](f"_theirs_{n}").alias(f"_theirs_{n}"))
    return replace(theirs, days=days).per_day(daily).groupBy(DAY, *declared.by).agg(*merged)


def _examples(by_key: DataFrame, declared: Reconciliation) -> dict[date, list[Difference]]:
    """The first keys of each kind and day, in order of their values, nulls last."""
    in_order = [F.asc_nulls_last(name) for name in declared.by] or [F.asc(DAY)]
    ranked = by_key.where(F.isnotnull("_kind")).withColumn(
        "_rank", F.row_number().over(SortWindow.partitionBy(DAY, "_kind").orderBy(*in_order))
    )
    rows = ranked.where(F.col("_rank") <= EXAMPLES).withColumn("_key", F.array(*as_text(declared.by))).collect()
    examples: defaultdict[date, list[Difference]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[DAY], _KINDS.index(row["_kind"]), row["_rank"])):
        sides = (_figures(row, side, declared) for side in ("ours", "theirs"))
        examples[row[DAY]].append(Difference(tuple(row["_key"]), *sides))
    return examples


def _figures(row: Row, side: str, declared: Reconciliation) -> Figures | None:
    return tuple(row[f"_{side}_{n}"] for n, _ in _numbered(declared)) if row[f"_{side}"] else None


def _numbered(declared: Reconciliation) -> list[tuple[int, Amount]]:
    return list(enumerate(declared.amounts))
