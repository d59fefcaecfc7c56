"""Choose the version of each key that counts.

The order of the versions of a key, the most significant first: the columns that the contract declares, the arrival
date, a void before a record, the source's own order of files, the row's place in its file. All of it is a property of
the delivery, never of when or how it was ingested. Only versions that keep the rules count, on any day; rules do not
apply to a void. docs/versions.md has an example of each.

A rule concerns a delivered record: it sees the columns of the raw contract and the day of the event, and no column of
the platform. A tombstone is judged like the version on the other day for which it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.planning.arrivals import DIGITS, Delivery
from platform_assets.planning.arrivals import file_order as file_order_of
from platform_assets.planning.steps import NO_PARTS
from platform_assets.records.raw_rows import BREACH, RECORD, TOMBSTONE, VOID
from platform_assets.spark.tables.staging import SHARE, in_parts

FILE_ORDER, PLACE = "_file_order", "_place"
"""Raw columns: the file's name as it sorts, and the row's place in it."""

_FIELDS = ("_arrival", "_date", "_file", _NUMBER := "_file_number")
_TO_THE_END = 1 << 20
MOST_BROADCAST = 500_000
"""Keys that every Spark task can hold at once; with more of them rows are shuffled instead."""


def file_order(names: Iterable[str]) -> Column:
    """Compute `planning.replays.file_order` of a row's file, for any file name."""
    name = F.substring_index("_arrival", "/", -1)
    spans = {tuple(number.span() for number in re.finditer("[0-9]+", each)) for each in names}
    places = spans.pop() if len(spans) == 1 else None
    if places is None or any(end - start > DIGITS for start, end in places):
        padded = F.regexp_replace(name, "([0-9]+)", "0" * DIGITS + "$1")
        return F.concat(F.regexp_replace(padded, f"0*([0-9]{{{DIGITS},}})", "$1"), F.lit("\t"), name)
    # Most files of a source have their numbers in the same places: to cut them there takes a tenth of a pattern's time.
    parts, at = [], 0
    for start, end in places:
        parts += [F.substring(name, at + 1, start - at), F.lit("0" * (DIGITS - end + start))]
        at = start
    return F.concat(*parts, F.substring(name, at + 1, _TO_THE_END), F.lit("\t"), name)


def with_places(raw: DataFrame) -> DataFrame:
    """Return raw rows with a place each; older rows without one get the first place in a file, ordered by its name.

    As a text: engines differ in regular expressions.
    """
    name = F.substring_index("_arrival", "/", -1)
    return raw.withColumns({FILE_ORDER: F.coalesce(FILE_ORDER, name), PLACE: F.coalesce(PLACE, F.lit(-1))})


def declared_order(source: Contract) -> tuple[str, ...]:
    """Return the columns of the declared order of versions, the most significant first."""
    order = source.source.order if source.source else None
    files = {None: (), "name": (FILE_ORDER,)}.get(order, (_NUMBER,))
    return (*source.versioned_by, "_arrival_date", "_void", *files)


def order_of(source: Contract) -> tuple[str, ...]:
    """Return the columns that order the versions of a key, the most significant first; rows `in_order` have them.

    The hash orders only rows that were ingested before raw had their place.
    """
    return tuple(dict.fromkeys((*declared_order(source), FILE_ORDER, PLACE, "_row_hash")))


def in_order(
    raw: DataFrame, source: Contract, replayed: Mapping[str, Delivery], numbers: Mapping[str, int]
) -> DataFrame:
    """Return raw rows with all columns of their order; a repeated file's rows have the first file's place.

    Args:
        raw: rows in `raw_schema`.
        replayed: first file of the same content, by arrival, as `planning.replays` finds it.
        numbers: number of each arrival's file in the source's order, if it declares more than names.
    """
    rows = with_places(raw).withColumn("_void", is_void(source.void_condition))
    if replayed or numbers:
        places = {path: (None, None, number) for path, number in numbers.items()} | {
            path: (str(first.arrival_date), file_order_of(first.path), numbers.get(first.path))
            for path, first in replayed.items()
        }
        # As a text in the plan: what a transform is given must hold no rows that come from elsewhere.
        text = json.dumps([dict(zip(_FIELDS, (path, *place), strict=True)) for path, place in places.items()])
        schema = "array<struct<_arrival: string, _date: date, _file: string, _file_number: bigint>>"
        known = raw.sparkSession.range(1).select(F.inline(F.from_json(F.lit(text), schema)))
        kept = {"_arrival_date": F.coalesce("_date", "_arrival_date"), FILE_ORDER: F.coalesce("_file", FILE_ORDER)}
        rows = rows.join(F.broadcast(known), "_arrival", "left").withColumns(kept).drop("_date", "_file")
    elif _NUMBER in declared_order(source):
        rows = rows.withColumn(_NUMBER, F.lit(None).cast("long"))
    return rows


def greatest_versions(
    raw: DataFrame, source: Contract, parts: Mapping[date, int] = NO_PARTS, *, heavy: bool = False
) -> DataFrame:
    """Return the greatest version of each key and day, of any kind; each day, or part, in one Spark partition.

    Args:
        raw: rows that count, `in_order`.
        parts: number of parts of each large day.
        heavy: whether a key has too many versions for one task: every task sends on the greatest of its input, and the
            resulting partitioning is unspecified.
    """
    order = [F.desc(name) for name in order_of(source)]
    if heavy:  # Spark itself looks for the first of each key before it shuffles, where nothing else asks it to
        dealt, by = raw, [DAY, *source.key]
    elif parts:
        dealt, by = in_parts(raw, parts, source.key), [DAY, *source.key, SHARE]
    else:
        dealt, by = raw.repartition(DAY), [DAY, *source.key]
    ranked = dealt.withColumn("_rank", F.row_number().over(SortWindow.partitionBy(*by).orderBy(*order)))
    return ranked.where(F.col("_rank") == 1).drop("_rank", SHARE)


def superseded_rows(good: DataFrame, source: Contract) -> DataFrame:
    """Return the rows of each day that another version of their key replaced, with that version's arrival.

    Of rows that count and keep the rules, `in_order`.
    """
    newest_first = SortWindow.partitionBy(DAY, *source.key).orderBy(*(F.desc(name) for name in order_of(source)))
    ranked = good.withColumns(
        {"_rank": F.row_number().over(newest_first), "_superseded_by": F.first("_arrival").over(newest_first)}
    )
    lost = ranked.where((F.col("_rank") > 1) & ~F.col("_kind").isin(TOMBSTONE, BREACH))
    return lost.select(*source.column_names, "_arrival", "_superseded_by", DAY)


def valid_at_start(raw: DataFrame, first: date, source: Contract, rules: Sequence[Rule]) -> DataFrame:
    """Move raw rows from before the calendar to its first day, without rows that a newer one replaced.

    Rows that break a rule stay, since they go into quarantine.
    """
    thing = [name for name in source.key if name != source.event_time]
    counted_on = F.greatest(DAY, F.lit(first))
    newest = SortWindow.partitionBy(DAY, *source.key, "_good").orderBy(*map(F.desc, order_of(source)))
    delivered = raw.withColumn("_delivered_kind", F.col("_kind"))  # a verdict may change the kind
    judged = with_verdict(delivered, rules, source.void_condition)
    is_valid = F.col("_good") & (F.col("_kind") == RECORD) & (F.row_number().over(newest) == 1)
    valid = judged.withColumn("_valid", F.when(is_valid, F.col(DAY)))
    since = F.max("_valid").over(SortWindow.partitionBy(counted_on, *thing))
    breaks = ~F.col("_good") | (F.col("_kind") == BREACH)
    standing = valid.withColumn("_stands", breaks | F.coalesce(F.col(DAY) == since, F.lit(True)))
    kept = standing.where("_stands").withColumns({"_kind": F.col("_delivered_kind"), DAY: counted_on})
    return kept.select(*raw.columns)


def row_balances(raw: DataFrame, source: Contract, rules: Sequence[Rule]) -> dict[date, dict[str, int]]:
    """Return the required balance of each raw day's rows, counted without computing the result.

    Args:
        raw: rows that count, tombstones included, `in_order`.
        rules: quarantining rules of the silver table; for those with a tolerance, judged and broken rows are counted.

    Returns:
        By day: `raw` rows, `quarantined` rows, `voided` keys, the `expected` rows that stay, all `keys`, those without
        a good version, `keys_quarantined`, those whose version the declared order does not decide, `rivals`, and
        how many versions a key has at most, `most_versions`. Counted from the keys and versions alone and independently
        of `greatest_versions`, so that the two can be held against each other.
    """
    tolerant = [rule for rule in rules if rule.allowed is not None]
    of_rules = [name for rule in tolerant for name in verdicts(rule)]
    columns = dict.fromkeys((DAY, *source.key, "_kind", *order_of(source), "_good", *of_rules))
    judged = with_verdict(raw, rules, source.void_condition, tolerant).select(*columns)
    per_key = _per_key(judged, source, of_rules)
    has_rows, none_is_good = F.col("_rows") > 0, F.col("_good_rows") == 0
    counts_for = {True: F.lit(True), False: none_is_good}
    counts = (
        per_key.groupBy(DAY)
        .agg(
            F.sum("_rows").alias("raw"),
            F.max("_versions").alias("most_versions"),
            F.sum("_quarantined").alias("quarantined"),
            F.count_if("_is_record").alias("expected"),
            F.count_if("_is_void").alias("voided"),
            F.count_if(has_rows).alias("keys"),
            F.count_if(has_rows & none_is_good).alias("keys_quarantined"),
            F.count_if("_asked").alias("asked"),
            # Keys: a row that a good version replaced is corrected already.
            *(F.count_if((F.col(name) > 0) & counts_for[name.startswith(JUDGED)]).alias(name) for name in of_rules),
        )
        .collect()
    )
    figures = ("raw", "quarantined", "voided", "expected", "keys", "keys_quarantined", "most_versions", *of_rules)
    balances = {row[DAY]: {"rivals": 0, **{name: row[name] for name in figures}} for row in counts}
    if many := sum(row["asked"] for row in counts):
        judged = judged.where(F.col(DAY).isin([row[DAY] for row in counts if row["asked"]]))
        among = per_key.where("_asked").select(DAY, *source.key, "_tied")
        among = F.broadcast(among) if many <= MOST_BROADCAST else among
        tops = _tops(judged.join(among, [DAY, *source.key]), source, "_tied")
        settled = tops.groupBy(DAY).agg(
            F.count_if(F.col("_tied") & (F.col("_top._kind") == RECORD)).alias("expected"),
            F.count_if(F.col("_tied") & (F.col("_top._kind") == VOID)).alias("voided"),
            F.count_if("_top._rivals").alias("rivals"),
        )
        for row in settled.collect():
            for name in ("expected", "voided", "rivals"):
                balances[row[DAY]][name] += row[name]
    return balances


def _per_key(judged: DataFrame, source: Contract, of_rules: Sequence[str]) -> DataFrame:
    """Return one row for each key and day: its number of rows of each kind, and its newest version.

    `_asked` are keys whose version only the rest of the order decides, or that have versions of other content and the
    same declared order; `_tied` those of them whose kind is still unknown.
    """
    newest_by = order_of(source)[0]
    is_row = F.col("_kind") != TOMBSTONE
    breaks = F.col("_kind") == BREACH  # competes as a tombstone does: what it beats is neither kept nor voided
    kinds = {RECORD: F.col("_kind") == RECORD, VOID: F.col("_kind") == VOID, TOMBSTONE: ~is_row | breaks}
    newest = [
        F.max(F.when(F.col("_good") & of_kind, F.col(newest_by))).alias(f"_{kind}") for kind, of_kind in kinds.items()
    ]
    # Rows of a key meet once, in one task: nearly every key has one, so that nothing is gained by counting before.
    may_rival = F.col("_good") & ~F.col("_void")
    declared = F.when(may_rival, F.xxhash64(*declared_order(source)))
    hashed = judged.withColumns({"_declared": declared, "_content": F.when(may_rival, F.col("_row_hash"))})
    counts = {
        "_versions": F.count(F.lit(1)),
        "_rows": F.count_if(is_row),
        "_quarantined": F.count_if(is_row & (~F.col("_good") | breaks)),
        "_good_rows": F.count_if(F.col("_good") & ~breaks),
        **{name: F.count_if(is_row & ~F.col("_void") & F.col(name)) for name in of_rules},
    }
    equal = (
        hashed.repartition(DAY, *source.key)
        .groupBy(DAY, *source.key, "_declared")
        .agg(
            *(count.alias(name) for name, count in counts.items()),
            (F.min("_content") != F.max("_content")).alias("_differ"),
            *newest,
        )
    )
    per_key = equal.groupBy(DAY, *source.key).agg(
        *(F.sum(name).alias(name) for name in counts),
        F.bool_or("_differ").alias("_differ"),
        *(F.max(f"_{kind}").alias(f"_{kind}") for kind in kinds),
    )
    # Names of ours begin with `_`, which no column of a key does.
    record, void, tombstone = (F.col(f"_{kind}") for kind in (RECORD, VOID, TOMBSTONE))
    top = F.greatest(record, void, tombstone)
    # Only versions of the same instant need the rest of the order, and only few keys have such.
    ties = record.eqNullSafe(F.greatest(void, tombstone)) | void.eqNullSafe(F.greatest(record, tombstone))
    tied = F.coalesce(ties & F.isnotnull(F.coalesce(void, tombstone)), F.lit(False))
    asked = tied | F.coalesce("_differ", F.lit(False))
    kept = {"_is_record": ~tied & (record == top), "_is_void": ~tied & (void == top)}
    return per_key.withColumns({"_tied": tied, "_asked": asked, **kept})


def rivals(raw: DataFrame, source: Contract, rules: Sequence[Rule]) -> DataFrame:
    """Return the keys of each day whose version the declared order does not decide, with the `_files` of their rows."""
    tops = _tops(with_verdict(raw, rules, source.void_condition), source)
    return tops.where("_top._rivals").select(DAY, *source.key, F.col("_top._files").alias("_files"))


def _tops(judged: DataFrame, source: Contract, *others: str) -> DataFrame:
    """Return the greatest version of each key and day, `_top`: its kind, and whether it is a record with rivals."""
    declared, order = declared_order(source), order_of(source)
    columns = list(dict.fromkeys((DAY, *source.key, *others, *declared)))
    files = [F.collect_set("_arrival").alias("_files")] if "_arrival" in judged.columns else []
    kind = F.max_by("_kind", F.struct(*order))
    are_rivals = (kind == RECORD) & (F.min("_row_hash") != F.max("_row_hash"))
    by_declared = judged.where("_good").groupBy(*columns)
    groups = by_declared.agg(kind.alias("_kind"), are_rivals.alias("_rivals"), *files)
    kept = F.struct("_kind", "_rivals", *(["_files"] if files else []))
    return groups.groupBy(DAY, *source.key, *others).agg(F.max_by(kept, F.struct(*declared)).alias("_top"))


JUDGED = "_judged_"
_ROW = "_row"


def with_verdict(raw: DataFrame, rules: Sequence[Rule], voided: str | None, counted: Sequence[Rule] = ()) -> DataFrame:
    """Add `_good` to raw rows: whether a version competes for its key.

    A version competes if it keeps every rule, null counting as broken, or if it is void. It also competes if it breaks
    a rule with `breach="void"`; such a record gets the kind `breach`.

    Args:
        rules: quarantining rules of the silver table.
        counted: rules whose verdicts are needed one by one, as `verdicts` returns them.
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
    """Return whether a row deletes its key; for a tombstone, whether its version does."""
    return F.coalesce(F.expr(voided), F.lit(False)) if voided else F.lit(False)


def with_broken_rules(raw: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return raw rows with `_broken`: the names of the silver rules that a row breaks."""
    names = [F.when(~keeps(rule), F.lit(rule.name)) for rule in rules]
    return _judged(raw, {"_broken": F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")})


def applies(rule: Rule) -> Column:
    """Return whether a rule judges a row."""
    return F.coalesce(F.expr(rule.where), F.lit(False)) if rule.where.strip() else F.lit(True)


def keeps(rule: Rule) -> Column:
    """Return whether a row keeps a rule, as far as the row alone shows; a null condition is broken."""
    is_alone = rule.kind.is_condition
    kept = F.coalesce(F.expr(rule.kind.text), F.lit(False)) if is_alone else ~has_null(rule)
    return kept | ~applies(rule) if rule.where.strip() else kept


def has_null(rule: Rule) -> Column:
    """Return whether a row lacks a value of a rule's columns."""
    lacks = F.lit(False)
    for name in rule.kind.columns:
        lacks = lacks | F.isnull(name)
    return lacks


def verdicts(rule: Rule) -> dict[str, Column]:
    """Return whether a row breaks a rule, and whether it is judged, under the names of `rule_counts`."""
    return {f"_breaks_{rule.name}": ~keeps(rule), f"{JUDGED}{rule.name}": applies(rule)}


def rule_counts(rules: Sequence[Rule], figures: Mapping[str, int]) -> dict[str, RuleCount]:
    """Return the counts of each rule from a day's figures."""
    return {r.name: RuleCount(*(figures.get(f"_{what}_{r.name}", 0) for what in ("breaks", "judged"))) for r in rules}


def _judged(raw: DataFrame, verdicts: Mapping[str, Column]) -> DataFrame:
    delivered = [column for column in raw.columns if column != DAY and not column.startswith("_")]
    # Spark takes the row apart again before anything runs: it is in one piece only where names are looked up.
    seen = raw.select(F.struct(*raw.columns).alias(_ROW), *delivered, F.col("_order_day").alias(DAY))
    named = [verdict.alias(name) for name, verdict in verdicts.items()]
    return seen.select(_ROW, *named).select(f"{_ROW}.*", *verdicts)
