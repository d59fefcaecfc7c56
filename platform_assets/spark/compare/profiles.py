"""Profile staged days from the files to be published, count broken rules, and show keys that failed a gate.

What a single row shows is counted while staged days are profiled. Rules about other rows read their own columns again.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.schema import names_in
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.records.differences import EXAMPLES, Digest, Key
from platform_assets.records.raw_rows import ERASED, RECORD, TOMBSTONE, VOID, WITHDRAWAL
from platform_assets.spark.compare.in_files import (
    FileRows,
    contents,
    digests,
    is_at_hand,
    repeated_keys,
    staged_at_hand,
)
from platform_assets.spark.raw.versions import (
    applies,
    has_null,
    is_void,
    keeps,
    order_of,
    rivals,
    rule_counts,
    verdicts,
    with_verdict,
)
from platform_assets.spark.session.configuration import software_of
from platform_assets.spark.tables.reading import kept_frames, read_files, read_staged
from platform_assets.spark.tables.schemas import digest_of, digest_sums
from platform_assets.spark.windows import History


@dataclass(frozen=True)
class Profile:
    """Figures of one staged day: nulls of the columns that have any, and keys with more than one row."""

    digest: Digest = Digest()
    nulls: dict[str, int] = field(default_factory=dict)
    repeated_keys: int = 0
    rules: dict[str, RuleCount] = field(default_factory=dict)


@dataclass(frozen=True)
class RawProfile:
    """Figures of staged raw days.

    Args:
        digests: digest added to each day, including tombstones and withdrawals.
        tombstones: number of tombstones among these rows, by day.
        withdrawals: number of withdrawal markers among them, by day.
        ahead: number of rows that arrived before their day, by day.
        lags: sum of the days between day and arrival of delivered rows, by day.
        taken: rows of each arrival, without tombstones and withdrawals.
    """

    digests: dict[date, Digest] = field(default_factory=dict)
    tombstones: Counter[date] = field(default_factory=Counter)
    withdrawals: Counter[date] = field(default_factory=Counter)
    ahead: Counter[date] = field(default_factory=Counter)
    lags: Counter[date] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    software: dict[str, str] = field(default_factory=dict)

    def add(self, other: RawProfile) -> None:
        """Add the figures of other rows."""
        for day, digest in other.digests.items():
            self.digests[day] = self.digests.get(day, Digest()) + digest
        self.tombstones.update(other.tombstones)
        self.withdrawals.update(other.withdrawals)
        self.ahead.update(other.ahead)
        self.lags.update(other.lags)
        self.taken.update(other.taken)


def profile(
    staged: DataFrame,
    required: Sequence[str],
    key: Sequence[str],
    rules: Sequence[Rule] = (),
    few: FileRows | None = None,
) -> dict[date, Profile]:
    """Profile every staged day that has rows in one pass over all columns and one over the key.

    Args:
        key: columns that should identify a row within its day; none skips the second pass.
        rules: rules about rows to be published, each counted as far as single rows show.
        few: the same rows, whose keys are then read without Spark.
    """
    repeated = _repeated_keys(staged, key, few) if key else {}
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
    return {
        row[DAY]: Profile(
            digest=digest_of(row, row["_rows"]),
            nulls={name: row[f"_nulls_{n}"] for n, name in enumerate(required) if row[f"_nulls_{n}"]},
            repeated_keys=repeated.get(row[DAY], 0),
            rules=rule_counts(rules, row.asDict()),
        )
        for row in figures
    }


def profile_few(
    few: FileRows, schema: StructType, required: Sequence[str], key: Sequence[str]
) -> dict[date, Profile] | None:
    """Profile staged days without Spark, as `profile` does; None where only Spark can."""
    read = contents(few, schema)
    repeated = repeated_keys(few, key, schema) if key and read is not None else {}
    if read is None or repeated is None:
        return None
    return {
        day: Profile(digest, {name: nulls[name] for name in required if nulls[name]}, repeated.get(day, 0))
        for day, (digest, nulls) in read.items()
    }


def profile_raw(staged: DataFrame) -> RawProfile:
    """Profile staged raw rows, or dead letters, by day and arrival in one pass."""
    by = [name for name in _OF_ARRIVALS if name in staged.columns]
    return _raw_profile(_digests_by(staged, by), by, staged.sparkSession)


def profile_staged(spark: SparkSession, folder: Location) -> RawProfile:
    """Profile the raw rows, or dead letters, in a stage's folder; few of them without Spark."""
    schema = StructType.fromJson(json.loads(table_snapshot(folder).schema_string))
    by = [name for name in _OF_ARRIVALS if name in schema.names]
    few = staged_at_hand(spark, folder)
    groups = digests(few, schema, by) if few else None
    return profile_raw(read_staged(spark, folder)) if groups is None else _raw_profile(groups, by, spark)


def _raw_profile(groups: Mapping[tuple[Any, ...], Digest], by: Sequence[str], spark: SparkSession) -> RawProfile:
    found = RawProfile(software=software_of(spark))
    for (day, *group), digest in groups.items():
        of_group = dict(zip(by, group, strict=True))
        came, is_told = of_group.get("_arrival_date"), of_group.get("_kind") in (TOMBSTONE, WITHDRAWAL)
        found.digests[day] = found.digests.get(day, Digest()) + digest
        found.tombstones[day] += digest.rows if of_group.get("_kind") == TOMBSTONE else 0
        found.withdrawals[day] += digest.rows if of_group.get("_kind") == WITHDRAWAL else 0
        found.taken[of_group["_arrival"]] += 0 if is_told else digest.rows
        if "_arrival_date" in by:
            lag = 0 if is_told else (came - day).days
            found.ahead[day] += digest.rows if lag < 0 else 0
            found.lags[day] += digest.rows * max(lag, 0)
    return found


Fate = Literal["late", "refused", "erased"]
_FATES: Mapping[str, Fate] = {RECORD: "late", VOID: "late", ERASED: "erased"}
"""What becomes of a row without a day, by its kind; all others were refused."""


def fates_without_day(spark: SparkSession, folder: Location) -> dict[Fate, Counter[str]]:
    """Count staged rows without a day, as `parse` returns them, by outcome and arrival."""
    files = table_snapshot(folder).by_day().get(None, {}).values()
    found: defaultdict[Fate, Counter[str]] = defaultdict(Counter)
    if is_at_hand(spark, folder, sum(file.size for file in files)):
        for file in files:
            for batch in row_batches(folder / file.path, _BATCH_ROWS, ("_arrival", "_kind")):
                for arrival, kind in zip(
                    *(batch.column(name).to_pylist() for name in ("_arrival", "_kind")), strict=True
                ):
                    found[_FATES.get(kind, "refused")][arrival] += 1
        return dict(found)
    fate = F.create_map(*(F.lit(word) for pair in _FATES.items() for word in pair))[F.col("_kind")]
    staged = read_staged(spark, folder)
    for row in staged.where(F.isnull(DAY)).groupBy("_arrival", fate.alias("_fate")).count().collect():
        found[row["_fate"] or "refused"][row["_arrival"]] += row["count"]
    return dict(found)


_BATCH_ROWS = 16_384
_OF_ARRIVALS = ("_arrival", "_arrival_date", "_kind")


def _digests_by(rows: DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], Digest]:
    """Return the digest of each day's rows, grouped by some columns."""
    columns = [name for name in rows.columns if name != DAY]
    groups = rows.groupBy(DAY, *by).agg(F.count(F.lit(1)).alias("_rows"), *digest_sums(columns)).collect()
    return {tuple(row[name] for name in (DAY, *by)): digest_of(row, row["_rows"]) for row in groups}


def _repeated_keys(staged: DataFrame, key: Sequence[str], few: FileRows | None) -> dict[date, int]:
    if few and (found := repeated_keys(few, key, staged.schema)) is not None:
        return found
    twice = staged.groupBy(*dict.fromkeys((DAY, *key))).count().where(F.col("count") > 1)
    return {row[DAY]: row["count"] for row in twice.groupBy(DAY).count().collect()}


def by_columns(path: Location, files: Iterable[str], schema: StructType) -> Iterator[tuple[StructType, list[str]]]:
    """Yield files grouped by equal columns: the columns in order, then the day; and the files.

    The schema has the types of all columns that they may have.
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
    """Return the digest of some files' rows, by day; a day without rows is left out.

    A digest covers exactly the columns that rows were published with: a file is hashed by its own columns.
    """
    digests: defaultdict[date, Digest] = defaultdict(Digest)
    for columns, alike in by_columns(path, files, schema):
        for day, of_day in profile(read_files(spark, path, alike, columns), (), ()).items():
            digests[day] += of_day.digest
    return dict(digests)


DayKeys = Mapping[date, Sequence[Key]]
"""The first keys by day, in order of their values, nulls last; a day without any is missing."""


def keys_without(rows: DataFrame, days: Collection[date], column: str, key: Sequence[str]) -> DayKeys:
    """Return keys of rows without a value in a column."""
    return first_keys(of_days(rows, days).where(F.isnull(column)), key)


def keys_of_several_rows(rows: DataFrame, days: Collection[date], key: Sequence[str]) -> DayKeys:
    """Return keys with more than one row on a day."""
    return first_keys(of_days(rows, days).groupBy(*dict.fromkeys((DAY, *key))).count().where(F.col("count") > 1), key)


def keys_not_as_expected(
    raw: DataFrame,
    rows: DataFrame,
    days: Collection[date],
    source: Contract,
    rules: Sequence[Rule],
) -> tuple[DayKeys, DayKeys]:
    """Return keys lost from silver, and unexpected ones.

    The newest good version of a key decides; one that breaks a rule does not count. The columns of the key have the
    same names in raw and silver.
    """
    key = source.key
    good = with_verdict(of_days(raw, days), rules, source.void_condition).where("_good")
    newest = good.groupBy(DAY, *key).agg(F.max_by("_kind", F.struct(*order_of(source))))
    expected = newest.toDF(DAY, *key, "_newest").where(F.col("_newest") == RECORD).withColumn("_there", F.lit(False))
    actual = of_days(rows, days).select(DAY, *key, F.lit(True).alias("_there"))
    sides = expected.drop("_newest").unionByName(actual).groupBy(DAY, *key)
    with kept_frames() as keep:
        both = keep(sides.agg(F.bool_or("_there").alias("_is"), F.bool_or(~F.col("_there")).alias("_should")))
        return first_keys(both.where("_should and not _is"), key), first_keys(both.where("_is and not _should"), key)


def keys_of_rivals(raw: DataFrame, days: Collection[date], source: Contract, rules: Sequence[Rule]) -> DayKeys:
    """Return keys whose version no declared order decided, each followed by the files of its versions."""
    found = rivals(of_days(raw, days), source, rules)
    files = F.array_join(F.transform(F.array_sort("_files"), lambda file: F.substring_index(file, "/", -2)), ", ")
    return first_keys(found.withColumn("_files", files), (*source.key, "_files"))


def as_text(names: Iterable[str]) -> list[Column]:
    """Return columns as Spark writes them: a timestamp is not converted to the time zone of this process."""
    return [F.col(name).cast("string") for name in names]


def of_days(rows: DataFrame, days: Collection[date] | None) -> DataFrame:
    """Return the rows of some days; all of them by default."""
    return rows if days is None else rows.where(F.col(DAY).isin(sorted(days)))


def first_rows(rows: DataFrame, by: Sequence[str], order: Iterable[str], most: int) -> DataFrame:
    """Return the first rows of each group, with their `_rank` in the order of some columns, nulls last."""
    in_order = SortWindow.partitionBy(*by).orderBy(*map(F.asc_nulls_last, order))
    return rows.withColumn("_rank", F.row_number().over(in_order)).where(F.col("_rank") <= most)


def first_keys(rows: DataFrame, key: Sequence[str]) -> DayKeys:
    """Return the first keys of some rows by day."""
    first = first_rows(rows.select(*dict.fromkeys((DAY, *key))).distinct(), [DAY], key, EXAMPLES)
    shown = first.select(DAY, "_rank", F.array(*as_text(key)).alias("_key"))
    keys: defaultdict[date, list[Key]] = defaultdict(list)
    for row in sorted(shown.collect(), key=lambda row: (row[DAY], row["_rank"])):
        keys[row[DAY]].append(tuple(row["_key"]))
    return keys


_GROUP_ROWS = "_group_rows"


class Neighbours(NamedTuple):
    """Rows of the table on other days, and the distance within which equal rows are wrong."""

    rows: DataFrame
    within_days: int


Beside = History | Neighbours | None
"""What a rule looks at beside the rows of a day."""


def rule_aggregates(rules: Sequence[Rule]) -> list[Column]:
    """Count the rows of a day that break each rule on their own, and those that it judges."""
    return [F.count_if(verdict).alias(name) for rule in rules for name, verdict in verdicts(rule).items()]


def breaking_beside_others(rule: Rule, rows: DataFrame, beside: Beside) -> dict[date, int]:
    """Count the rows of each day that break a rule `unique` or `exists` together with others: repeated, or dangling."""
    counts = _broken(rule, rows, beside).groupBy(DAY).agg(F.sum(_GROUP_ROWS).alias(_GROUP_ROWS)).collect()
    return {row[DAY]: row[_GROUP_ROWS] for row in counts}


def keys_breaking(
    rule: Rule, rows: DataFrame, days: Collection[date], key: Sequence[str], beside: Beside
) -> tuple[Sequence[str], DayKeys]:
    """Return the first keys of rows that break a rule; for a rule about other rows, the values that it compares.

    The name of the values comes first.
    """
    wanted, columns = F.col(DAY).isin(sorted(days)), rule.kind.columns
    alone = rows.where(wanted & ~keeps(rule))
    if rule.kind.is_condition:
        return key, first_keys(alone, key)
    found = alone.select(DAY, *columns).unionByName(_broken(rule, rows, beside).select(DAY, *columns).where(wanted))
    return columns, first_keys(found, columns)


def keys_in_quarantine(rule: Rule, raw: DataFrame, days: Collection[date], source: Contract) -> DayKeys:
    """Return the first keys of delivered rows that break a rule."""
    judged = with_verdict(of_days(raw, days), [rule], source.void_condition, [rule])
    counted = (F.col("_kind") != TOMBSTONE) & ~is_void(source.void_condition)
    return first_keys(judged.where(counted & F.col(f"_breaks_{rule.name}")), source.key)


def _broken(rule: Rule, rows: DataFrame, beside: Beside) -> DataFrame:
    """Return the values of rows that break a rule together with others, each with the day and the number of rows."""
    groups = _groups(rule, rows)
    if isinstance(beside, History):
        return _dangling(rule, groups, beside)
    again = groups.where(F.col(_GROUP_ROWS) > 1).withColumn(_GROUP_ROWS, F.col(_GROUP_ROWS) - 1)
    if beside is None:
        return again
    elsewhere = _groups(rule, rows.unionByName(beside.rows)).drop(_GROUP_ROWS)
    elsewhere = elsewhere.toDF("_day", *(f"_theirs_{n}" for n in range(len(elsewhere.columns) - 1)))
    same = [F.col(ours) == F.col(theirs) for ours, theirs in zip(rule.kind.columns, elsewhere.columns[1:], strict=True)]
    near = F.abs(F.datediff(DAY, "_day")).between(1, beside.within_days)
    return groups.join(elsewhere, [*same, near], "left_semi").unionByName(
        again.join(elsewhere, [*same, near], "left_anti")
    )


def _groups(rule: Rule, rows: DataFrame) -> DataFrame:
    """Return the values of judged rows of a day, each with its number of rows."""
    judged = rows.where(applies(rule) & ~has_null(rule)).groupBy(DAY, *rule.kind.columns)
    return judged.agg(F.count(F.lit(1)).alias(_GROUP_ROWS))


def _dangling(rule: Rule, groups: DataFrame, reference: History) -> DataFrame:
    theirs = {f"_theirs_{n}": name for n, name in enumerate(rule.kind.theirs)}
    named = (F.col(name).alias(as_) for as_, name in theirs.items())
    valid = reference.intervals().select(*named, "_valid_from", "_valid_to")
    there = [F.col(ours) == F.col(as_) for ours, as_ in zip(rule.kind.columns, theirs, strict=True)]
    then = (F.col(DAY) >= F.col("_valid_from")) & (F.isnull("_valid_to") | (F.col(DAY) < F.col("_valid_to")))
    return groups.join(valid, [*there, then], "left_anti")
