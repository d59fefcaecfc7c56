"""The profile: what is really in staged days, recounted from the files that would be published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.lakehouse.delta.schema import names_in
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.digest import Digest
from platform_assets.records.row_kinds import TOMBSTONE, WITHDRAWAL
from platform_assets.spark.compare.rules import rule_aggregates
from platform_assets.spark.raw.rules import rule_counts
from platform_assets.spark.session.configuration import software_of
from platform_assets.spark.tables.reading import read_files
from platform_assets.spark.tables.row_hash import digest_of, digest_sums


@dataclass(frozen=True)
class Profile:
    """Figures of one staged day.

    Args:
        nulls: rows without a value, by column; only columns that have any.
        repeated_keys: keys that more than one row has.
    """

    digest: Digest = Digest()
    nulls: dict[str, int] = field(default_factory=dict)
    repeated_keys: int = 0
    rules: dict[str, RuleCount] = field(default_factory=dict)


@dataclass(frozen=True)
class RawProfile:
    """Figures of staged raw days.

    Args:
        digests: what is added to each day, tombstones and withdrawals included.
        tombstones: how many of those rows are tombstones, by day.
        withdrawals: how many of them take an arrival back, by day.
        ahead: how many of them arrived before their day, by day.
        lags: by how many days delivered rows arrived after their day, added up, by day.
        taken: rows of each arrival, neither tombstones nor withdrawals.
    """

    digests: dict[date, Digest] = field(default_factory=dict)
    tombstones: dict[date, int] = field(default_factory=dict)
    withdrawals: dict[date, int] = field(default_factory=dict)
    ahead: dict[date, int] = field(default_factory=dict)
    lags: dict[date, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)


def profile(
    staged: DataFrame,
    required: Sequence[str],
    key: Sequence[str],
    unique: Collection[date] = (),
    rules: Sequence[Rule] = (),
) -> dict[date, Profile]:
    """Profile every staged day in one pass over all columns and one over the key.

    Args:
        key: columns that should identify a row within its day; none skips the second pass.
        unique: days on which they are known to, which the second pass leaves out.
        rules: about rows to be published, each counted as far as single rows say so.

    Returns:
        One profile per day that has rows.
    """
    columns = [name for name in staged.columns if name != DAY]
    figures = (
        staged.groupBy(DAY)
        .agg(
            F.expr("count(1) AS _rows"),
            *digest_sums(columns),
            *(F.expr(f"count_if(isnull(`{name}`)) AS _nulls_{n}") for n, name in enumerate(required)),
            *rule_aggregates(rules),
        )
        .collect()
    )
    left = {row[DAY] for row in figures}.difference(unique) if key else set()
    some = staged.where(F.col(DAY).isin(left)) if unique and None not in left else staged
    repeated = _repeated_keys(some, key) if left else {}
    return {
        row[DAY]: Profile(
            digest=digest_of(row, row["_rows"]),
            nulls={name: row[f"_nulls_{n}"] for n, name in enumerate(required) if row[f"_nulls_{n}"]},
            repeated_keys=repeated.get(row[DAY], 0),
            rules=rule_counts(rules, row.asDict()),
        )
        for row in figures
    }


def profile_raw(staged: DataFrame) -> RawProfile:
    """Profile staged raw rows, or dead letters, by day and arrival in one pass."""
    columns = [name for name in staged.columns if name != DAY]
    kind = F.col("_kind") if "_kind" in columns else F.lit(None).cast("string")
    is_ahead, lag = F.lit(False), F.lit(0)
    if "_arrival_date" in columns:
        is_delivered = ~kind.isin(TOMBSTONE, WITHDRAWAL)
        is_ahead = (F.col("_arrival_date") < F.col(DAY)) & is_delivered
        lag = F.when(is_delivered & ~is_ahead, F.datediff("_arrival_date", DAY)).otherwise(0)
    rows = (
        staged.groupBy(DAY, "_arrival")
        .agg(
            F.count(F.lit(1)).alias("_rows"),
            F.count_if(kind == TOMBSTONE).alias("_tombstones"),
            F.count_if(kind == WITHDRAWAL).alias("_withdrawals"),
            F.count_if(is_ahead).alias("_ahead"),
            F.sum(lag).alias("_lag"),
            *digest_sums(columns),
        )
        .collect()
    )
    digests: dict[date, Digest] = {}
    tombstones: dict[date, int] = {}
    withdrawals: dict[date, int] = {}
    ahead: dict[date, int] = {}
    lags: dict[date, int] = {}
    taken: dict[str, int] = {}
    for row in rows:
        day, arrival = row[DAY], row["_arrival"]
        digests[day] = digests.get(day, Digest()) + digest_of(row, row["_rows"])
        tombstones[day] = tombstones.get(day, 0) + row["_tombstones"]
        withdrawals[day] = withdrawals.get(day, 0) + row["_withdrawals"]
        ahead[day] = ahead.get(day, 0) + row["_ahead"]
        if "_arrival_date" in columns:
            lags[day] = lags.get(day, 0) + row["_lag"]
        taken[arrival] = taken.get(arrival, 0) + row["_rows"] - row["_tombstones"] - row["_withdrawals"]
    return RawProfile(digests, tombstones, withdrawals, ahead, lags, taken, software_of(staged.sparkSession))


def _repeated_keys(staged: DataFrame, key: Sequence[str]) -> dict[date, int]:
    twice = staged.groupBy(*dict.fromkeys((DAY, *key))).count().where(F.col("count") > 1)
    return {row[DAY]: row["count"] for row in twice.groupBy(DAY).count().collect()}


def by_columns(path: Location, files: Iterable[str], schema: StructType) -> Iterator[tuple[StructType, list[str]]]:
    """Yield files that have the same columns.

    Args:
        schema: types of all columns that they may have, the day included.

    Yields:
        The columns of some files in their order, then the day; and those files.

    Raises:
        StagedFileError: a file is missing or is no Parquet file.
    """
    known = set(schema.fieldNames()) - {DAY}
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        groups[tuple(name for name in names_in(path / file) if name in known)].append(file)
    for names, alike in groups.items():
        yield StructType([schema[name] for name in (*names, DAY)]), alike


def digests_in_files(
    spark: SparkSession, path: Location, files: Iterable[str], schema: StructType
) -> dict[date, Digest]:
    """Return the digest of what lies in some files, by day; a day without rows is left out.

    A digest covers every column that rows were published with, and no other: a file is hashed by the columns that it
    has.
    """
    digests: defaultdict[date, Digest] = defaultdict(Digest)
    for columns, alike in by_columns(path, files, schema):
        for day, of_day in profile(read_files(spark, path, alike, columns), (), ()).items():
            digests[day] += of_day.digest
    return dict(digests)
