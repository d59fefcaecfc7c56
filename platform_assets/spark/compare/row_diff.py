"""Compare two versions of some days, or two sides of a reconciliation: by keys, days, and sums of columns.

A side may be a golden copy: a folder or a file of another program.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType, NullType, NumericType

from platform_assets.contracts import DAY, Column, Contract
from platform_assets.contracts.checks import EXACT, Tolerance
from platform_assets.contracts.table import amounts
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.delta.commits import head_version
from platform_assets.lakehouse.layout import located
from platform_assets.places import folder_of
from platform_assets.records.differences import EXAMPLES, DayChange, Digest, Key, KeyCounts, Moves, Sum
from platform_assets.spark.compare.profiles import as_text, first_rows
from platform_assets.spark.raw.casting import cast, lost
from platform_assets.spark.tables.reading import kept_frames, without_patterns
from platform_assets.spark.tables.schemas import digest_of, digest_sums, row_hash_sql
from platform_assets.words import counted


def outer_union(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the rows of both by name; a column that one side lacks is null there, with the other's type.

    With `allowMissingColumns` Sail gives such a column no type, and sums its decimals as doubles.
    """
    return _with_columns_of(right, left).unionByName(_with_columns_of(left, right))


def _with_columns_of(other: DataFrame, frame: DataFrame) -> DataFrame:
    has = set(frame.columns)
    lacks = (field for field in other.schema.fields if field.name not in has)
    return frame.withColumns({field.name: F.lit(None).cast(field.dataType) for field in lacks})


_LOW_HALF = 0xFFFFFFFF
_FLOOR = Context(prec=100, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Disagreement:
    """A key whose rows differ between two versions of a day.

    Args:
        rows: number of its rows in the left and right version.
        values: texts of the differing columns, left and right; none unless both versions have the key.
    """

    day: date
    key: Key
    rows: tuple[int, int]
    values: Mapping[str, tuple[str | None, str | None]]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the differing columns."""
        return tuple(self.values)


def within_sql(left: str, right: str, tolerance: Tolerance, types: Sequence[DataType]) -> str:
    """Return SQL that is true if two figures are equal or within a tolerance, and never null.

    With decimals of different scales Spark rounds if both do not fit into 38 digits. So figures and bounds first get
    types that do. A figure that is too large for its type is within no tolerance.
    """
    scales = [each.scale if isinstance(each, DecimalType) else 0 for each in types]
    is_exact = all(isinstance(each, DecimalType | IntegralType) for each in types)
    equal = f"{left} <=> {right}"
    if is_exact and not _fit(types):
        equal = f"({equal} AND {_digits(left)} = {_digits(right)})"
    if tolerance.is_exact:
        return equal
    share, absolute = (tolerance.percent / 100).normalize(), tolerance.absolute
    if is_exact:
        width = 36 - max(0, -int(share.as_tuple().exponent))  # so that a share of a figure has at most 38 digits
        scale = min(max(scales), width)
        left, right = (f"try_cast({side} AS decimal({width},{scale}))" for side in (left, right))
        absolute = min(_FLOOR.quantize(absolute, Decimal(1).scaleb(-scale)), Decimal(10 ** (width + 1 - scale) - 1))
    apart = f"abs({left} - {right})"
    bounds = [f"{absolute:f}BD", *(f"{share:f}BD * abs({side})" for side in (left, right) if share)]
    return f"({equal} OR coalesce({' OR '.join(f'{apart} <= {bound}' for bound in bounds)}, false))"


def _fit(types: Sequence[DataType]) -> bool:
    """Return whether all digits of both types fit into a decimal of 38 digits."""
    decimals = [each if isinstance(each, DecimalType) else DecimalType(20, 0) for each in types]
    return max(each.precision - each.scale for each in decimals) + max(each.scale for each in decimals) <= 38


def disagreements(left: DataFrame, right: DataFrame, contract: Contract) -> tuple[Disagreement, ...]:
    """Return the first keys, in order of their values, on which two versions of the same days disagree."""
    values = [name for name in contract.column_names if name not in contract.key]
    return _first(differing_keys(left, right, contract.row_key, values), contract.row_key, values, EXAMPLES)


def key_differences(
    left: DataFrame, right: DataFrame, key: Sequence[str], values: Sequence[str], tolerance: Tolerance, most: int
) -> tuple[dict[date, KeyCounts], tuple[Disagreement, ...]]:
    """Count the differing keys of each day, and return the first of each kind; values have one type on both sides."""
    with kept_frames() as keep:
        found = keep(differing_keys(left, right, key, values, tolerance))
        kinds = {"missing_left": "isnull(_rows_0)", "missing_right": "isnull(_rows_1)"}
        kinds["different"] = "isnotnull(_rows_0) AND isnotnull(_rows_1)"
        rows = found.groupBy(DAY).agg(*(F.expr(f"count_if({is_so})").alias(kind) for kind, is_so in kinds.items()))
        counts = {row[DAY]: KeyCounts(*(row[kind] for kind in kinds)) for row in rows.collect()}
        return counts, _first(found, key, values, most) if counts and most else ()


def differing_keys(
    left: DataFrame, right: DataFrame, key: Sequence[str], values: Sequence[str], tolerance: Tolerance = EXACT
) -> DataFrame:
    """Return one row for each differing key, with `_rows_0` and `_0_n` of the left side, `_rows_1` and `_1_n`.

    `_unequal` says which of the values differ. A key with several rows on one side is compared by their number, their
    greatest values and, without tolerance, a hash of all.
    """
    by = [*dict.fromkeys((DAY, *key))]
    sides = [_side(rows, by, values, at) for at, rows in enumerate((left, right))]
    both = outer_union(*sides).groupBy(*by)
    names = [name for side in sides for name in side.columns if name not in by]
    merged = both.agg(*(F.expr(f"max({name})").alias(name) for name in names))
    types = [{field.name: field.dataType for field in side.schema} for side in (left, right)]
    pairs = [[of_side.get(name, NullType()) for of_side in types] for name in values]
    allowed = (tolerance if isinstance(ours, NumericType) else EXACT for ours, _ in pairs)
    each = enumerate(zip(allowed, pairs, strict=True))
    unequal = [f"NOT ({within_sql(f'_0_{n}', f'_1_{n}', one, pair)})" for n, (one, pair) in each]
    differs = ["NOT (_rows_0 <=> _rows_1)", *unequal]
    differs += ["(_rows_0 > 1 AND NOT (_hash_0 <=> _hash_1))"] if tolerance.is_exact else []
    return merged.withColumn("_unequal", F.expr(f"array({', '.join(unequal)})" if unequal else "array(false)")).where(
        " OR ".join(differs)
    )


def _side(rows: DataFrame, by: Sequence[str], values: Sequence[str], at: int) -> DataFrame:
    """Return one row per key: its number of rows, their hash, and the greatest value of each column."""
    return rows.groupBy(*by).agg(
        F.expr(f"count(1) AS _rows_{at}"),
        F.expr(f"sum({row_hash_sql(values)} & {_LOW_HALF}L) AS _hash_{at}"),
        *(F.expr(f"max(`{name}`) AS _{at}_{n}") for n, name in enumerate(values)),
    )


def _first(found: DataFrame, key: Sequence[str], values: Sequence[str], most: int) -> tuple[Disagreement, ...]:
    kind = F.expr("CASE WHEN isnull(_rows_0) THEN 0 WHEN isnull(_rows_1) THEN 1 ELSE 2 END")
    first = first_rows(found.withColumn("_kind", kind), ["_kind"], dict.fromkeys((DAY, *key)), most)
    texts = [F.array(*as_text(f"_{at}_{n}" for n in range(len(values)))).alias(f"_values_{at}") for at in (0, 1)]
    shown = first.select(
        DAY, "_kind", "_rank", F.array(*as_text(key)).alias("_key"), "_rows_0", "_rows_1", "_unequal", *texts
    )
    rows = sorted(shown.collect(), key=lambda row: (row["_kind"], row["_rank"]))
    return tuple(_disagreement(row, values) for row in rows)


def _disagreement(row: Row, values: Sequence[str]) -> Disagreement:
    rows = row["_rows_0"] or 0, row["_rows_1"] or 0
    pairs = zip(values, row["_unequal"], row["_values_0"], row["_values_1"], strict=False)
    differing = {name: (left, right) for name, differs, left, right in pairs if differs and all(rows)}
    return Disagreement(row[DAY], tuple(row["_key"]), rows, differing)


_WHOLE = "decimal(38,0)"
"""What whole numbers are summed as: the sum of a day's longs need not be a long."""


def day_changes(before: DataFrame, after: DataFrame, contract: Contract) -> dict[date, DayChange]:
    """Return rows added, removed and changed by key, and the sums of all amounts, for every day of either frame.

    Each frame has one row per key and day. An amount whose sum does not fit its type, before or after, is left out: a
    display must not fail.
    """
    names = amounts(contract)
    whole = {name for name in names if not contract.column(name).type.startswith("decimal")}
    others = [name for name in contract.column_names if name not in contract.key]
    sides = [
        frame.selectExpr(
            DAY,
            *(f"`{name}`" for name in contract.key),
            f"{row_hash_sql(others)} AS {side}",
            *(f"`{name}` AS {side}_{at}" for at, name in enumerate(names)),
        )
        for frame, side in ((before, "_before"), (after, "_after"))
    ]
    values = [name for side in ("_before", "_after") for name in (side, *(f"{side}_{at}" for at in range(len(names))))]
    # Each side has one row per key, so the greatest value is the only one.
    per_key = (
        outer_union(*sides).groupBy(DAY, *contract.key).agg(*(F.expr(f"max({name}) AS {name}") for name in values))
    )

    def total(side: str, at: int, name: str) -> str:
        value = f"CAST({side}_{at} AS {_WHOLE})" if name in whole else f"{side}_{at}"
        return f"CASE WHEN count({value}) > 0 THEN try_sum({value}) ELSE 0 END AS {side}_{at}"

    rows = (
        per_key.groupBy(DAY)
        .agg(
            F.expr("count_if(isnull(_before)) AS added"),
            F.expr("count_if(isnull(_after)) AS removed"),
            F.expr("count_if(_before != _after) AS changed"),
            *(F.expr(total(side, at, name)) for side in ("_before", "_after") for at, name in enumerate(names)),
        )
        .collect()
    )

    def change(row: Row) -> DayChange:
        sums = [{name: row[f"{side}_{at}"] for at, name in enumerate(names)} for side in ("_before", "_after")]
        known = [name for name in names if all(of_side[name] is not None for of_side in sums)]
        before, after = ({n: int(of_side[n]) if n in whole else of_side[n] for n in known} for of_side in sums)
        return DayChange(row["added"], row["removed"], row["changed"], before, after)

    return {row[DAY]: change(row) for row in rows}


_EXACT = {"decimal": "`{0}`", "integer": "CAST(`{0}` AS decimal(38,0))", "long": "CAST(`{0}` AS decimal(38,0))"}
"""What columns are summed as, by type: the sum of a day's longs need not be a long. Others have no exact sum."""
_NOTHING = "CAST(NULL AS decimal(1,0))"


def moved_sums(
    before: DataFrame, after: DataFrame, columns: Sequence[str], by: tuple[str, ...], most: int
) -> dict[date, Moves]:
    """Sum columns of some days before and after, exactly, in one job; return the days on which a sum differs.

    A column without any value on a day before, such as one that was added since, has not moved on it. Columns are whole
    numbers or decimals of the new content. The first keys of each day are returned.
    """
    keys = [f"_key_{at}" for at in range(len(by))]
    names = [f"_{side}_{at}" for at in range(len(columns)) for side in ("before", "after")]
    sides = [
        frame.selectExpr(
            DAY,
            f"{int(side == 'before')} AS _row",
            *(f"CAST(`{name}` AS string) AS {key}" for name, key in zip(by, keys, strict=True)),
            *(
                f"{_EXACT.get(types.get(name, ''), _NOTHING).format(name)} AS _{side}_{at}"
                for at, name in enumerate(columns)
            ),
        )
        for frame, side in ((before, "before"), (after, "after"))
        for types in [{column.name: column.dataType.typeName() for column in frame.schema}]
    ]
    rows = outer_union(*sides)
    sums = [F.expr(f"sum({name}) AS {name}") for name in names]
    differs = " OR ".join(
        f"(_there_{at} AND {_digits(f'_before_{at}')} <> {_digits(f'_after_{at}')})" for at in range(len(columns))
    )
    day = SortWindow.partitionBy(DAY)
    there = {
        f"_there_{at}": (F.count(f"_before_{at}").over(day) > 0) | (F.sum("_rows").over(day) == 0)
        for at in range(len(columns))
    }
    moved = (
        rows.groupBy(DAY, *keys)
        .agg(F.expr("sum(_row) AS _rows"), *sums)
        .withColumns(there)
        .where(differs)
        .withColumns({"_keys": F.count(F.lit(1)).over(day), "_place": F.row_number().over(day.orderBy(*keys or [DAY]))})
    )
    found: dict[date, Moves] = {}
    for row in moved.where(F.col("_place") <= most).collect():
        moved_on = found.setdefault(row[DAY], Moves(row["_keys"]))
        key = tuple(row[name] for name in keys)
        for at, name in enumerate(columns):
            if row[f"_there_{at}"]:
                moved_on.pairs[Sum(name, by, key)] = row[f"_before_{at}"], row[f"_after_{at}"]
    return found


def _digits(name: str) -> str:
    """Return a sum as text without its type's trailing zeros; no type holds every two decimals exactly."""
    text = f"coalesce(CAST({name} AS string), '0')"
    return f"CASE WHEN {text} LIKE '%.%' THEN trim(TRAILING '.' FROM trim(TRAILING '0' FROM {text})) ELSE {text} END"


class SideError(PlatformError):
    """A side of a reconciliation does not exist, or cannot be compared with the other one."""

    is_misspelt = True


def golden_copy(spark: SparkSession, place: str, contract: Contract) -> DataFrame:
    """Return the rows of a Parquet or Delta folder, or of a CSV file or URL, all of one moment.

    The texts of a CSV become the types of the other side's contract.

    Raises:
        SideError: it does not exist, cannot be read, or has no day or values of other types.
    """
    folder = folder_of(place)
    there = located(folder.absolute() if folder else place)
    if not (there.exists() or there.names()):
        raise SideError(f"There is no golden copy at {place}.", "Name a folder of Parquet or Delta, or a .csv file.")
    path = without_patterns(there)
    is_csv = place.removesuffix(".gz").endswith(".csv")
    with readable([place], [place]):
        if is_csv:
            options: dict[str, bool | str] = {"header": True, "escape": '"', "multiLine": True, "mode": "FAILFAST"}
            rows = spark.read.options(**options, columnPruning=False).csv(path)
        elif (version := head_version(there)) >= 0:
            rows = spark.read.format("delta").option("versionAsOf", version).load(path)
        else:
            rows = spark.read.parquet(path)
        if DAY not in rows.columns:
            todo = f"{did_you_mean(DAY, rows.columns)}Write the day of each row as {DAY}, a date."
            raise SideError(f"The golden copy {place} has no column {DAY!r}.", todo)
        return _typed(rows, place, contract) if is_csv else rows


@contextmanager
def readable(sides: Collection[str], copies: Collection[str]) -> Iterator[None]:
    """Raise a `SideError` if Spark cannot read or compare a side, which may be a golden copy."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred")]
        first = next(iter(lines), error)
        if not copies:
            todo = "`platform-assets admin doctor` looks at Spark, `platform-assets admin verify` at the tables."
            raise SideError(f"{' and '.join(sides)} cannot be compared: {first}", todo) from error
        is_empty = isinstance(error, PySparkException) and error.getCondition() == "UNABLE_TO_INFER_SCHEMA"
        what = f"{' or '.join(copies)} {'holds no Parquet file.' if is_empty else f'cannot be read: {first}'}"
        raise SideError(what, "Name a folder of Parquet files, of a Delta table, or a CSV with a header.") from error


def _typed(texts: DataFrame, place: str, contract: Contract) -> DataFrame:
    """Cast the fields of a CSV to the contract's types. Refuse values that would lose anything."""
    columns = [
        *(column for column in contract.columns if column.name in texts.columns),
        Column(DAY, "date", "The day."),
    ]
    typed = [f"{cast(f'`{column.name}`', 'string', column)} AS `{column.name}`" for column in columns]
    names = {column.name for column in columns}
    others = [f"`{name.replace('`', '``')}`" for name in texts.columns if name not in names]
    rows = texts.selectExpr(*typed, *others, *(f"`{name}` AS `given {name}`" for name in names))
    bad = [f"count_if({lost(f'`given {column.name}`', 'string', column)})" for column in columns]
    for column, count in zip(columns, rows.selectExpr(*bad).collect()[0], strict=True):
        if count:
            raise SideError(
                f"{place} has {counted(count, 'value')} of {column.name!r} that are no {column.type}, as "
                f"{contract.name} has it.",
                f"Write {column.name!r} as {column.type}, or leave the column out.",
            )
    return rows.drop(*(f"given {name}" for name in names))


def day_digests(rows: DataFrame, columns: Sequence[str]) -> dict[date, Digest]:
    """Return the digest of each day over some columns, for any order of rows."""
    figures = rows.groupBy(DAY).agg(F.expr("count(1) AS _rows"), *digest_sums(columns)).collect()
    return {row[DAY]: digest_of(row, row["_rows"]) for row in figures}


def day_sums(rows: DataFrame, scales: Mapping[str, int]) -> dict[date, dict[str, Decimal | None]]:
    """Return the sums of some columns of each day; None if a sum has too many digits."""
    figures = group_sums(rows, (), scales).collect() if scales else []
    return {row[DAY]: {name: row[name] for name in scales} for row in figures}


def group_sums(rows: DataFrame, by: Sequence[str], scales: Mapping[str, int]) -> DataFrame:
    """Return one row for each day and group, with the sums of some columns, each with its decimal places."""
    sums = (f"try_sum(CAST(`{name}` AS decimal(38,{scale}))) AS `{name}`" for name, scale in scales.items())
    return rows.groupBy(*dict.fromkeys((DAY, *by))).agg(*map(F.expr, sums))


def arrivals_of_keys(
    raw: DataFrame, key: Sequence[str], wanted: Collection[tuple[date, Key]]
) -> dict[tuple[date, Key], tuple[str, ...]]:
    """Return the arrivals that brought rows of some keys, by day and key; its values are texts."""
    text = json.dumps([{"_on": str(day), "_wanted": values} for day, values in wanted])
    schema = "array<struct<_on: date, _wanted: array<string>>>"
    asked = raw.sparkSession.range(1).select(F.inline(F.from_json(F.lit(text), schema)))
    texts = raw.select(DAY, F.array(*as_text(key)).alias("_key"), "_arrival")
    is_asked = (F.col(DAY) == F.col("_on")) & (F.col("_key") == F.col("_wanted"))
    found = texts.join(F.broadcast(asked), is_asked, "left_semi").groupBy(DAY, "_key")
    rows = found.agg(F.array_sort(F.collect_set("_arrival")).alias("_arrivals")).collect()
    return {(row[DAY], tuple(row["_key"])): tuple(row["_arrivals"]) for row in rows}
