"""Reconciliation: compare staged days with their input rows, all days of a batch in one job.

For few rows, DuckDB finds the days with differences in their files; Spark then reads only these days.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, IntegralType, StructType

from platform_assets.contracts import DAY, Amount, Reconciliation, Span
from platform_assets.contracts.checks import Tolerance
from platform_assets.planning.windows import Calendar, ranges_read
from platform_assets.records.differences import EXAMPLES, Difference, Differences, Figures
from platform_assets.spark.compare.in_files import FileRows, answers
from platform_assets.spark.compare.profiles import as_text, first_rows, of_days
from platform_assets.spark.compare.row_diff import outer_union, within_sql
from platform_assets.spark.windows import Windowed

if TYPE_CHECKING:
    import duckdb

_MERGED = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max}
_KINDS = ("missing", "extra", "unequal")


def differences(
    ours: DataFrame,
    theirs: DataFrame | Windowed,
    declared: Reconciliation,
    days: Collection[date],
) -> dict[date, Differences]:
    """Compare the figures of every key on every day, and return one value for each day that differs.

    In sums and counts an absent key counts as zero, and so does a null; in other figures a null equals only a null.
    """
    by_key = figures_by_key(ours, theirs, declared, days)
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


def figures_by_key(
    ours: DataFrame, theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]
) -> DataFrame:
    """Return one row per day and key with the figures of both tables; `_kind` is the kind of difference, or null."""
    ours = (
        of_days(ours, days)
        .groupBy(DAY, *declared.by)
        .agg(
            F.lit(True).alias("_ours"), *(F.expr(amount.ours).alias(f"_ours_{n}") for n, amount in _numbered(declared))
        )
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
        equal = equal & _equal(n, amount, declared.allowed, both.schema)
    kind = F.when(F.isnull("_ours"), "missing").when(F.isnull("_theirs"), "extra").otherwise("unequal")
    return both.withColumn("_kind", F.when(~equal, kind))


def _equal(n: int, amount: Amount, tolerance: Tolerance, schema: StructType) -> Column:
    types = {name: schema[name].dataType for name in (f"_ours_{n}", f"_theirs_{n}")}
    ours, theirs = (f"coalesce({name}{_or_zero(each) if amount.is_additive else ''})" for name, each in types.items())
    return F.expr(within_sql(ours, theirs, tolerance, tuple(types.values())))


def _or_zero(type_: DataType) -> str:
    """Return a zero that keeps a type; Spark widens 0 without a cast, which Sail may not do."""
    needs_cast = isinstance(type_, DecimalType) and type_.scale > 28  # beside the ten digits of an int
    return f", CAST(0 AS {type_.simpleString()})" if needs_cast else ", 0"


def _total(declared: Reconciliation, amount: Amount, side: int, name: str) -> Column:
    """Return the figure of a whole day from its keys' figures; null if these do not determine it."""
    aggregate = amount.sides[side]
    if declared.by and aggregate is None:
        return F.lit(None).alias(name)
    total = _MERGED[aggregate.function](name) if declared.by and aggregate else F.max(name)
    return (F.coalesce(total, F.lit(0)) if amount.is_additive else total).alias(name)


def _upstream(theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]) -> DataFrame:
    """Return the input's figures by day and key. Each day is summed before it is spread over windows."""
    frame = theirs.frame if isinstance(theirs, Windowed) else of_days(theirs, days)
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
    """Return the first keys of each kind and day, in order of their values, nulls last."""
    first = first_rows(by_key.where(F.isnotnull("_kind")), [DAY, "_kind"], declared.by or [DAY], EXAMPLES)
    rows = first.withColumn("_key", F.array(*as_text(declared.by))).collect()
    examples: defaultdict[date, list[Difference]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[DAY], _KINDS.index(row["_kind"]), row["_rank"])):
        sides = (_figures(row, side, declared) for side in ("ours", "theirs"))
        examples[row[DAY]].append(Difference(tuple(row["_key"]), *sides))
    return examples


def _figures(row: Row, side: str, declared: Reconciliation) -> Figures | None:
    return tuple(row[f"_{side}_{n}"] for n, _ in _numbered(declared)) if row[f"_{side}"] else None


def _numbered(declared: Reconciliation) -> list[tuple[int, Amount]]:
    return list(enumerate(declared.amounts))


_ALWAYS = Calendar(date.min, date.max)


def days_in_files(
    few: tuple[FileRows, FileRows],
    schema: StructType,
    theirs: DataFrame | Windowed,
    declared: Reconciliation,
    days: Collection[date],
) -> set[date] | None:
    """Return the days with differing figures of any key, without Spark; None if only Spark can tell.

    Figures are sums and counts, in which an absent key counts as zero. So two are equal if their difference is zero.

    Args:
        few: the rows of both tables.
        schema: schema of the checked table's rows.
    """
    upstream, window = (theirs.frame, theirs.window) if isinstance(theirs, Windowed) else (theirs, Span(0, 0))
    sides = [sql for amount in declared.amounts if (sql := _in_files(amount, (schema, upstream.schema)))]
    types = (side[name].dataType for side in (schema, upstream.schema) for name in declared.by)
    if not days or len(sides) < len(declared.amounts) or any(isinstance(type_, DoubleType) for type_ in types):
        return None  # a double is one number in two forms
    by = "".join(f', "{name}"' for name in declared.by)
    mine, other = (", ".join(f"{figure} AS _{n}" for n, figure in enumerate(side)) for side in zip(*sides, strict=True))
    names = [f"_{n}" for n in range(len(declared.amounts))]
    read = ((day, *span) for day in days for span in ranges_read(window, day, _ALWAYS))
    spans = ", ".join(f"(DATE '{day}', DATE '{first}', DATE '{last}')" for day, first, last in read)
    less = ", ".join(f"-sum({name}) AS {name}" for name in names)

    def ask(ours: duckdb.DuckDBPyRelation, theirs: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        daily = theirs.aggregate(f"{DAY}{by}, {other}", f"{DAY}{by}")
        reached = f"(VALUES {spans}) AS spans (_day, _first, _last) ON {DAY} BETWEEN _first AND _last"
        spread = f"SELECT _day{by}, {less} FROM daily JOIN {reached} GROUP BY _day{by}"  # noqa: S608 - of the contract
        taken = daily.query("daily", spread)
        assert taken is not None  # it is a query
        both = ours.aggregate(f"{DAY} AS _day{by}, {mine}", f"{DAY}{by}").union(taken)
        left = both.aggregate(f"_day{by}, {', '.join(f'sum({name}) AS {name}' for name in names)}", f"_day{by}")
        return left.filter(" OR ".join(f"{name} <> 0" for name in names)).project("_day").distinct()

    found = answers(ask, *few)
    return None if found is None else {day for (day,) in found} & set(days)


def _in_files(amount: Amount, schemas: tuple[StructType, StructType]) -> list[str] | None:
    """Return both sides of a figure in DuckDB's SQL; None unless they are exact sums or counts of plain columns.

    Both as decimals of one scale, or an error: DuckDB rounds if sums of 38 digits have two scales.
    """
    sides: list[str] = []
    scale = 0
    for aggregate, schema in zip(amount.sides, schemas, strict=True):
        if aggregate is None or aggregate.function not in ("sum", "count"):
            return None
        if aggregate.function == "count" and aggregate.argument in ("*", "1"):
            sides.append("count(*)")
            continue
        if aggregate.argument not in schema.names:
            return None
        type_ = schema[aggregate.argument].dataType
        if aggregate.function == "sum":
            if not isinstance(type_, DecimalType | IntegralType):
                return None
            scale = max(scale, type_.scale if isinstance(type_, DecimalType) else 0)
        sides.append(f'{aggregate.function}("{aggregate.argument}")')
    return [f"CAST({side} AS DECIMAL(38, {scale}))" for side in sides]
