"""A few keys of rows that failed a gate, so that a person knows where to look. Only asked for where one failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.records.differences import EXAMPLES, Key
from platform_assets.records.row_kinds import RECORD
from platform_assets.spark.raw.rules import with_verdict
from platform_assets.spark.raw.versions import order_of, rivals
from platform_assets.spark.tables.reading import kept_frames

Keys = Mapping[date, Sequence[Key]]
"""The first keys by day, in order of their values, nulls last; a day without any is missing."""


def keys_without(rows: DataFrame, days: Collection[date], column: str, key: Sequence[str]) -> Keys:
    """Return keys of rows that have no value in a column."""
    return first_keys(_of(rows, days).where(F.isnull(column)), key)


def keys_of_several_rows(rows: DataFrame, days: Collection[date], key: Sequence[str]) -> Keys:
    """Return keys that more than one row of a day has."""
    return first_keys(_of(rows, days).groupBy(*dict.fromkeys((DAY, *key))).count().where(F.col("count") > 1), key)


def keys_not_as_expected(
    raw: DataFrame,
    rows: DataFrame,
    days: Collection[date],
    source: Contract,
    rules: Sequence[Rule],
) -> tuple[Keys, Keys]:
    """Return which keys of silver are lost, and which should not be there.

    Args:
        raw: rows of the raw days, all versions, in their order.
        source: contract of the raw table; the columns of its key are named alike in both.
        rules: of the silver table; a version that breaks one does not count.

    Returns:
        Keys whose newest good version is a record and that are not in `rows`, and keys of `rows` for which it is not.
    """
    key = source.key
    good = with_verdict(_of(raw, days), rules, source.void_condition).where("_good")
    newest = good.groupBy(DAY, *key).agg(F.max_by("_kind", F.struct(*order_of(source))))
    expected = newest.toDF(DAY, *key, "_newest").where(F.col("_newest") == RECORD).withColumn("_there", F.lit(False))
    actual = _of(rows, days).select(DAY, *key, F.lit(True).alias("_there"))
    sides = expected.drop("_newest").unionByName(actual).groupBy(DAY, *key)
    with kept_frames() as keep:
        both = keep(sides.agg(F.bool_or("_there").alias("_is"), F.bool_or(~F.col("_there")).alias("_should")))
        return first_keys(both.where("_should and not _is"), key), first_keys(both.where("_is and not _should"), key)


def keys_of_rivals(raw: DataFrame, days: Collection[date], source: Contract, rules: Sequence[Rule]) -> Keys:
    """Return keys whose version no declared order settled, each followed by the files that its versions came in."""
    found = rivals(_of(raw, days), source, rules)
    files = F.array_join(F.transform(F.array_sort("_files"), lambda file: F.substring_index(file, "/", -2)), ", ")
    return first_keys(found.withColumn("_files", files), (*source.key, "_files"))


def as_text(names: Iterable[str]) -> list[Column]:
    """Return columns as Spark writes them: a time stamp is not moved to the time zone of this process."""
    return [F.col(name).cast("string") for name in names]


def _of(rows: DataFrame, days: Collection[date]) -> DataFrame:
    return rows.where(F.col(DAY).isin(sorted(days)))


def first_keys(rows: DataFrame, key: Sequence[str]) -> Keys:
    """Return the first keys of some rows by day."""
    in_order = SortWindow.partitionBy(DAY).orderBy(*(F.asc_nulls_last(name) for name in key))
    ranked = rows.select(*dict.fromkeys((DAY, *key))).distinct().withColumn("_rank", F.row_number().over(in_order))
    shown = ranked.where(F.col("_rank") <= EXAMPLES).select(DAY, "_rank", F.array(*as_text(key)).alias("_key"))
    keys: defaultdict[date, list[Key]] = defaultdict(list)
    for row in sorted(shown.collect(), key=lambda row: (row[DAY], row["_rank"])):
        keys[row[DAY]].append(tuple(row["_key"]))
    return keys
