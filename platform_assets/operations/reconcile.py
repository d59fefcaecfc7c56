"""Reconcile any two sides: tables of a release or a stage, and golden copies; by columns, by day, and by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from platform_assets.contracts import DAY, Catalogue, Contract, Span
from platform_assets.contracts.checks import EXACT, TABLE_SIDE, Tolerance
from platform_assets.contracts.columns import digits_of
from platform_assets.contracts.table import amounts
from platform_assets.engine.platform import Platform
from platform_assets.engine.raw import effective_raw_rows
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import counting_rows
from platform_assets.errors import did_you_mean
from platform_assets.lakehouse.delta.schema import types_in
from platform_assets.lakehouse.reading import resolve, version_in
from platform_assets.operations.pins import release_number
from platform_assets.operations.stages.store import opened_stage, stage_basis
from platform_assets.planning.windows import ranges
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.quality.sides import (
    DayBeside,
    KeyBeside,
    SidesBeside,
    days_to_join,
    difference,
    differing_days,
    outcome_of,
    shared_columns,
)
from platform_assets.records.differences import Digest, Key, KeyCounts
from platform_assets.spark.compare.profiles import of_days
from platform_assets.spark.compare.row_diff import (
    Disagreement,
    SideError,
    arrivals_of_keys,
    day_digests,
    day_sums,
    golden_copy,
    group_sums,
    key_differences,
    readable,
)
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import declared_types, schema_of

_NUMBERS = ("decimal", "int", "long")


@dataclass(frozen=True)
class Side:
    """One side of a reconciliation.

    Args:
        types: types of its columns by name, with the day.
        rows: gives a frame of some days.
        contents: digest of every day in all columns, if known without reading the days.
    """

    name: str
    types: Mapping[str, str]
    rows: Callable[[Collection[date] | None], Any]
    contract: Contract | None = None
    contents: Mapping[date, Digest] = field(default_factory=dict)
    snapshot: LakeSnapshot | None = None

    def knows(self, columns: Collection[str]) -> bool:
        """Return whether its known contents cover exactly these columns."""
        return bool(self.contents) and self.types.keys() - {DAY} == set(columns)


def reconcile(
    platform: Platform,
    spark: SparkOnDemand,
    sides: tuple[str, str],
    days: Collection[date] | None = None,
    by: Sequence[str] | None = None,
    tolerance: Tolerance = EXACT,
    *,
    drill: bool = False,
    most: int = 20,
    progress: OnProgress = no_progress,
) -> SidesBeside:
    """Compare the columns of two sides, the content of each day, and the keys of the days that differ.

    Args:
        sides: left and right: a table, optionally followed by `@RELEASE` or `@stage:NAME`, or the path of a golden
            copy.
        by: compare sums by these columns instead of rows by key; `event_date` alone for the sums of each day.
        most: keys of each kind to name.
    """
    copies = [side for side in sides if not TABLE_SIDE.fullmatch(side)]
    progress(Progress("comparing", " and ".join(sides)))
    with readable(sides, copies):
        left, right = both = _opened(platform, spark, sides)
        tables = {side.contract.name for side in both if side.contract}
        values, schema = shared_columns(left.types, right.types, is_one_table=len(tables) == 1)
        common = _amounts(left, right)
        summed = {name: common[name] for name in common if (name in values if by is None else name not in by)}
        if by is None:
            key = _common_key(left, right, values)
        else:
            left, right = both = _grouped(left, right, by, summed)
            key, values, schema = tuple(name for name in by if name != DAY), tuple(summed), ()
        columns = sorted({*key, *values})
        contents = [_contents(side, columns, days) for side in both]
        if suspects := differing_days(*contents):
            for side, content in zip(both, contents, strict=True):
                if side.knows(columns):  # also days that were made before the table had all its columns
                    content |= dict.fromkeys(suspects, Digest()) | day_digests(side.rows(suspects), columns)
        differing = differing_days(*contents)
        joined = days_to_join(differing, tolerance, drill=drill)
        sums = [day_sums(side.rows(differing), summed) if differing else {} for side in both]
        counts: dict[date, KeyCounts] = {}
        found: tuple[Disagreement, ...] = ()
        if joined:
            compared = [name for name in values if name not in key]
            counts, found = key_differences(left.rows(joined), right.rows(joined), key, compared, tolerance, most)
        keys = _named(platform, spark, both, key, found)
    progress(Progress("comparing", " and ".join(sides), finished=True))
    beside = []
    for day in differing:
        of_keys = counts.get(day, KeyCounts()) if day in joined else None
        here, there = (of_side.get(day, dict.fromkeys(summed, Decimal(0))) for of_side in sums)
        rows = [content[day].rows if day in content else 0 for content in contents]
        pairs = {name: (here[name], there[name]) for name in summed}
        beside.append(DayBeside(day, outcome_of(of_keys, tolerance), (rows[0], rows[1]), pairs, of_keys))
    totals = [sum(digest.rows for digest in content.values()) for content in contents]
    there_at_all = {day for content in contents for day, digest in content.items() if digest.rows}
    names = left.name, right.name
    rows_of_all, outside = (totals[0], totals[1]), tuple(day for day in differing if day not in platform.calendar)
    return SidesBeside(names, key, schema, tolerance, len(there_at_all), rows_of_all, tuple(beside), keys, outside)


def _opened(platform: Platform, spark: SparkOnDemand, sides: tuple[str, str]) -> tuple[Side, Side]:
    found = [TABLE_SIDE.fullmatch(side) for side in sides]
    tables = [_table(platform, spark, *match.groups()) if match else None for match in found]
    known = next((side for side in tables if side), None)
    if known is None:
        raise SideError(
            f"Neither {sides[0]} nor {sides[1]} is a table, so no contract says what their key is.",
            "Name a table on one side, as gold.daily_sales.",
        )
    left, right = (table or _golden(spark, text, known) for text, table in zip(sides, tables, strict=True))
    return left, right


def _table(platform: Platform, spark: SparkOnDemand, name: str, is_stage: str | None, at: str | None) -> Side:
    contract = platform.catalogue[name]
    if is_stage and at:
        snapshot, where = stage_basis(platform, opened_stage(platform, at)), f"in stage {at}"
    else:
        release = resolve(platform.lake, release_number(platform.ledger, at) if at else None)
        snapshot, where = LakeSnapshot(platform, release), f"at release {release.number}"
    if name not in snapshot.staged.tables:
        version_in(platform.lake, name, snapshot.release, platform.catalogue.names)
    if contract.layer == "raw":
        declared = {column.name: column.type for column in contract.columns} | {DAY: "date"}
    else:
        declared = types_in(snapshot.schema_string(name))
    types = {column: "int" if type_ == "integer" else type_ for column, type_ in declared.items()}

    def rows(days: Collection[date] | None) -> Any:
        if contract.layer == "raw":
            there = [day for day in snapshot.days(name) if days is None or day in days]
            return counting_rows(spark(), contract, there, snapshot)
        files, schema = snapshot.files(name), schema_of(**{n: type_ for n, type_ in types.items() if n != DAY})
        spans = ranges(files.keys() if days is None else days)
        return read_days(spark(), platform.lake.table_path(name), files, schema, spans)

    days = {} if contract.layer == "raw" else snapshot.days(name)
    contents = {day: Digest.parse(record.digest) for day, record in days.items()}
    return Side(f"{name} {where}", types, rows, contract, contents, snapshot)


def _golden(spark: SparkOnDemand, place: str, other: Side) -> Side:
    """Open a golden copy; refuse columns of other types than the other side's."""
    assert other.contract is not None
    frame = golden_copy(spark(), place, other.contract)
    types = declared_types(frame.schema)
    for name, type_ in other.types.items():
        if types.get(name, type_) != type_:
            raise SideError(
                f"The golden copy {place} has {name!r} as {types[name]}, and {other.name} as {type_}.",
                f"Write the column {name!r} as {type_}, or leave it out.",
            )
    return Side(place, types, lambda days: of_days(frame, days))


def _common_key(left: Side, right: Side, values: Collection[str]) -> tuple[str, ...]:
    keys = [side.contract.key for side in (left, right) if side.contract]
    lacking = [name for name in keys[0] if name not in values]
    if lacking or {*keys[0]} != {*keys[-1]}:
        shown = " and ".join(f"({', '.join(key)})" for key in dict.fromkeys(keys))
        raise SideError(
            f"{left.name} and {right.name} have no common key: {shown}"
            f"{f', and one side has no {lacking[0]!r} of this type' if len({*keys}) == 1 else ''}.",
            "Compare sums with --by COLUMN, a column of both; `--by event_date` is one sum a day.",
        )
    return keys[0]


def _amounts(left: Side, right: Side) -> dict[str, int]:
    """Return the amounts common to both sides, with the decimal places of their sums."""
    both = [amounts(side.contract) for side in (left, right) if side.contract]
    types = {name: (left.types[name], right.types[name]) for name in both[0] if name in left.types.keys() & right.types}
    return {
        name: max((digits_of(type_) or (0, 0))[1] for type_ in pair)
        for name, pair in types.items()
        if name in both[-1] and all(type_.startswith(_NUMBERS) for type_ in pair)
    }


def _grouped(left: Side, right: Side, by: Sequence[str], summed: Mapping[str, int]) -> tuple[Side, Side]:
    """Return both sides as sums of their common amounts by day and some columns."""
    shared = [name for name, type_ in left.types.items() if right.types.get(name) == type_]
    for name in by:
        if name not in shared:
            found = (f"{side.types.get(name, 'no column')} in {side.name}" for side in (left, right))
            raise SideError(
                f"{name!r}, to compare by, is {' and '.join(found)}.",
                f"{did_you_mean(name, shared)}Name columns that both have of one type: {', '.join(shared)}.",
            )
    if not summed:
        raise SideError(
            f"{left.name} and {right.name} have no amount in common to compare by {', '.join(by)}.",
            "Declare a Reconciliation in the contract: its amounts have an expression for each side.",
        )
    types = {name: left.types[name] for name in by} | {name: f"decimal(38,{scale})" for name, scale in summed.items()}

    def sums(side: Side) -> Side:
        return replace(side, types=types, rows=lambda days: group_sums(side.rows(days), by, summed), contents={})

    return sums(left), sums(right)


def _contents(side: Side, columns: Sequence[str], days: Collection[date] | None) -> dict[date, Digest]:
    if side.knows(columns):
        return {day: digest for day, digest in side.contents.items() if days is None or day in days}
    found = day_digests(side.rows(days), columns)
    if None in found:
        raise SideError(f"{side.name} has rows without {DAY}.", f"Write it with a {DAY} in every row.")
    return found


def _named(
    platform: Platform,
    spark: SparkOnDemand,
    sides: tuple[Side, Side],
    key: Sequence[str],
    found: Collection[Disagreement],
) -> tuple[KeyBeside, ...]:
    """Return keys for people, with the arrivals that brought their rows."""
    tables = [(side.snapshot, side.contract) for side in sides if side.snapshot and side.contract]
    sensitive = {column.name for _, contract in tables for column in contract.columns if column.sensitive}
    snapshot, contract = max(tables, key=lambda table: table[0].number)
    raw = _raw_with(platform.catalogue, contract, key)
    arrivals: dict[tuple[date, Key], tuple[str, ...]] = {}
    if found and raw and snapshot.has(raw.name):
        rows = effective_raw_rows(spark(), raw, {one.day for one in found}, snapshot)
        arrivals = arrivals_of_keys(rows, key, [(one.day, one.key) for one in found])

    def masked(name: str, value: str | None) -> str:
        return platform.masking.masked(value) if name in sensitive or value is None else value

    return tuple(
        KeyBeside(
            day=one.day,
            key=", ".join(f"{name} {masked(name, value)}" for name, value in zip(key, one.key, strict=True)),
            how="different" if all(one.rows) else "missing right" if one.rows[0] else "missing left",
            rows=one.rows,
            values={
                name: (masked(name, pair[0]), masked(name, pair[1]), None if name in sensitive else difference(*pair))
                for name, pair in one.values.items()
            },
            arrivals=arrivals.get((one.day, one.key), ()),
        )
        for one in found
    )


def _raw_with(catalogue: Catalogue, contract: Contract, key: Sequence[str]) -> Contract | None:
    """Return the raw table that a table reads by the same day, if it has all columns of the key."""
    if contract.source is not None:
        return contract if key and {*key} <= {*contract.column_names} else None
    below = (_raw_with(catalogue, catalogue[read.table], key) for read in contract.inputs if read.window == Span(0, 0))
    return next(filter(None, below), None)
