"""Reconciliation in Spark: staged days against the rows they were made from, all days of a batch in one job.

Whether two tables have the same figures for every key, found out without grouping by key.

A figure that is a sum or a count is linear in its rows. So is the sum, over all keys, of each figure times a number
that a hash makes of its key; and two tables whose figures differ for any key agree on such a sum only by accident.
One pass over the rows of a day gives its checksum, and the checksum of a window is the sum of those of its days: the
rows need not be spread over all the windows that hold them.

Calculated modulo the prime 2^31 - 1, so that no product leaves a long, and with the two halves of a 64-bit hash: the
accident has a chance of about one in 10^18 for each day.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType, StructType

from platform_assets.contracts import DAY, Amount, Reconciliation
from platform_assets.contracts.checks import Tolerance
from platform_assets.planning.windows import Calendar, ranges_read
from platform_assets.records.differences import EXAMPLES, Difference, Differences, Figures
from platform_assets.spark.compare.in_files import FileRows, sums_by_day
from platform_assets.spark.compare.profiles import as_text, first_rows, of_days
from platform_assets.spark.compare.row_diff import outer_union, within_sql
from platform_assets.spark.tables.schemas import row_hash_sql
from platform_assets.spark.windows import Windowed

_MERGED = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max}
_KINDS = ("missing", "extra", "unequal")


def differences(
    ours: DataFrame,
    theirs: DataFrame | Windowed,
    declared: Reconciliation,
    days: Collection[date],
    few: tuple[FileRows, FileRows] | None = None,
) -> dict[date, Differences]:
    """Compare the figures of every key on every day, and return one value for each day that differs.

    In sums and counts a key that is absent counts as zero, and so does a null; in other figures a null equals a null
    and nothing else. Keys are looked at one by one only on days whose checksums differ, or where a figure has none.
    """
    differing = days_by_checksum(ours, theirs, declared, days, few)
    suspects = days if differing is None else differing
    if not suspects:
        return {}
    by_key = figures_by_key(ours, theirs, declared, suspects)
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
    """Return one row per day and key with the figures of both tables; `_kind` says how they differ, null if not."""
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
    """Write a zero that leaves a type as it is; Spark widens 0 without a cast, which Sail may not do."""
    needs_cast = isinstance(type_, DecimalType) and type_.scale > 28  # beside the ten digits of an int
    return f", CAST(0 AS {type_.simpleString()})" if needs_cast else ", 0"


def _total(declared: Reconciliation, amount: Amount, side: int, name: str) -> Column:
    """Return the figure of a whole day from those of its keys; null where these say nothing of it."""
    aggregate = amount.sides[side]
    if declared.by and aggregate is None:
        return F.lit(None).alias(name)
    total = _MERGED[aggregate.function](name) if declared.by and aggregate else F.max(name)
    return (F.coalesce(total, F.lit(0)) if amount.is_additive else total).alias(name)


def _upstream(theirs: DataFrame | Windowed, declared: Reconciliation, days: Collection[date]) -> DataFrame:
    """Return their figures by day and key. Each day is summed before it is spread over the windows that hold it."""
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


_PRIME = 2**31 - 1
_BASES = (1_181_783_497, 393_555_901)
"""Two numbers without meaning, one for each half of the hash."""
_DIGITS = 18
"""Of a whole number that surely is a long."""

_ALWAYS = Calendar(date.min, date.max)


@dataclass(frozen=True)
class _Term:
    """What every row adds to a figure, with its digits before and after the point; a long has none after.

    Args:
        value: Spark's SQL.
        in_files: DuckDB's, which knows columns of rows in files, and no expression over them; None for another one.
    """

    value: str
    digits: int
    scale: int
    in_files: str | None


_Checksums = dict[date, list[int]]
"""By day; one for each base."""


def days_by_checksum(
    ours: DataFrame,
    theirs: DataFrame | Windowed,
    declared: Reconciliation,
    days: Collection[date],
    few: tuple[FileRows, FileRows] | None = None,
) -> set[date] | None:
    """Return the days on which the figures of any key differ; a key that is absent counts as zero.

    None where a figure is no sum or count of numbers whose sums surely are longs.
    """
    upstream = theirs.frame if isinstance(theirs, Windowed) else theirs
    mine, other = _terms(ours, declared, 0), _terms(upstream, declared, 1)
    if mine is None or other is None:
        return None
    scales = [max(our_term.scale, their_term.scale) for our_term, their_term in zip(mine, other, strict=True)]
    if any(
        term.digits + scale > _DIGITS
        for side in (mine, other)
        for term, scale in zip(side, scales, strict=True)
        if scale
    ):
        return None
    both = few and _checksums_in_files(few, declared, (mine, other), scales)
    if both is None:
        both = _checksums(
            _summands(ours, declared, mine, scales, is_ours=True).unionByName(
                _summands(upstream, declared, other, scales, is_ours=False)
            )
        )
    sums, of_windows = both
    zero = [0] * len(_BASES)
    of_windows = _windowed(of_windows, theirs, days) if isinstance(theirs, Windowed) else of_windows
    return {
        day
        for day in days
        if any((a - b) % _PRIME for a, b in zip(sums.get(day, zero), of_windows.get(day, zero), strict=True))
    }


def _checksums(sides: DataFrame) -> tuple[_Checksums, _Checksums]:
    """Add up the summands of each day, of ours and of theirs."""
    names = [f"_sum_{n}" for n in range(len(_BASES))]
    both: tuple[_Checksums, _Checksums] = ({}, {})
    for row in sides.groupBy(DAY, "_ours").agg(*(F.sum(name).alias(name) for name in names)).collect():
        both[not row["_ours"]][row[DAY]] = [row[name] for name in names]
    return both


def _checksums_in_files(
    few: tuple[FileRows, FileRows],
    declared: Reconciliation,
    terms: tuple[Sequence[_Term], Sequence[_Term]],
    scales: Sequence[int],
) -> tuple[_Checksums, _Checksums] | None:
    """Add up the same of few rows, without Spark and with another hash; None where only Spark can.

    No product leaves a long here either.
    """
    found: list[_Checksums] = []
    key = ", ".join(f'"{name}"' for name in declared.by) or "0"
    # DuckDB's hash of two columns is the XOR of theirs, in which figures that keys exchange crosswise may cancel out.
    hashed = f"hash(hash({key}))"
    halves = (f"({hashed} & {_PRIME})::BIGINT", f"({hashed} >> 33)::BIGINT")
    for rows, of_side in zip(few, terms, strict=True):
        if any(term.in_files is None for term in of_side):
            return None
        values = [
            f"{term.in_files}::DECIMAL(38,{term.scale}) * {10**scale}"
            for term, scale in zip(of_side, scales, strict=True)
        ]
        wholes = [f"coalesce((({value})::HUGEINT % {_PRIME} + {_PRIME}) % {_PRIME}, 0)::BIGINT" for value in values]
        sums = []
        for half, base in zip(halves, _BASES, strict=True):
            parts = (f"{whole} * {pow(base, number, _PRIME)} % {_PRIME}" for number, whole in enumerate(wholes, 1))
            sums.append(f"({' + '.join(parts)}) % {_PRIME} * {half} % {_PRIME}")
        of_days = sums_by_day(rows, sums)
        if of_days is None:
            return None
        found.append(of_days)
    return found[0], found[1]


def _terms(frame: DataFrame, declared: Reconciliation, side: int) -> list[_Term] | None:
    """Return one per amount; None if any is no sum or count, or of numbers that do not fit."""
    values: list[str] = []
    in_files: list[str | None] = []
    for amount in declared.amounts:
        aggregate = amount.sides[side]
        if aggregate is None or aggregate.function not in ("sum", "count"):
            return None
        argument, is_count = f"({aggregate.argument}\n)", aggregate.function == "count"  # it may end in a comment
        is_there = "true" if aggregate.argument == "*" else f"{argument} IS NOT NULL"
        values.append(f"CAST({is_there} AS int)" if is_count else argument)
        column = f'"{aggregate.argument}"' if aggregate.argument in frame.columns else None
        counted = "1" if aggregate.argument in ("*", "1") else column and f"({column} IS NOT NULL)::INTEGER"
        in_files.append(counted if is_count else column)
    terms: list[_Term] = []
    types = frame.selectExpr(*values).schema.fields
    for value, read, type_ in zip(values, in_files, (field.dataType for field in types), strict=True):
        if isinstance(type_, DecimalType) and type_.precision <= _DIGITS:
            terms.append(_Term(value, type_.precision - type_.scale, type_.scale, read))
        elif isinstance(type_, IntegralType):
            terms.append(_Term(value, _DIGITS + 1, 0, read))
        else:
            return None
    return terms


def _summands(
    frame: DataFrame, declared: Reconciliation, terms: Sequence[_Term], scales: Sequence[int], *, is_ours: bool
) -> DataFrame:
    """Return what every row adds to the checksums of its day; SQL, since each part of a column calls the JVM."""
    prime = f"{_PRIME}L"
    wholes = [
        f"coalesce(pmod(CAST({term.value}{f' * {10**scale}' if scale else ''} AS bigint), {prime}), 0L)"
        for term, scale in zip(terms, scales, strict=True)
    ]
    hashed = row_hash_sql(declared.by)
    halves = (f"({hashed} & {_PRIME})", f"shiftrightunsigned({hashed}, 33)")
    columns: list[str] = []
    for n, (half, base) in enumerate(zip(halves, _BASES, strict=True)):
        # All figures of a row as one number, in which none can make up for another: each has a factor of its own.
        parts = (f"{whole} * {pow(base, number, _PRIME)} % {prime}" for number, whole in enumerate(wholes, 1))
        columns.append(f"({' + '.join(('0L', *parts))}) % {prime} * {half} % {prime} AS _sum_{n}")
    return frame.selectExpr(DAY, f"{str(is_ours).lower()} AS _ours", *columns)


def _windowed(by_day: Mapping[date, list[int]], theirs: Windowed, days: Collection[date]) -> dict[date, list[int]]:
    """Return the checksums of the windows of some days, from those of the days they read."""
    known = sorted(by_day)
    running = [list(accumulate((by_day[day][n] for day in known), initial=0)) for n in range(len(_BASES))]
    of_windows: dict[date, list[int]] = {}
    for day in days:
        read = ranges_read(theirs.window, day, _ALWAYS)
        spans = [(bisect_left(known, start), bisect_right(known, end)) for start, end in read]
        of_windows[day] = [sum(sums[end] - sums[start] for start, end in spans) for sums in running]
    return of_windows
