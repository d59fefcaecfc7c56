"""Days with only rows of some keys computed: copy the other rows, and describe the whole day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, AsOf, Contract, Input
from platform_assets.engine.day_contents import TOGETHER, Files, files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import Readiness
from platform_assets.lakehouse.releases import computed_by, made_by, release
from platform_assets.planning.selection import KeyScope, ScopeError, is_mixed, mixed
from platform_assets.planning.windows import Ranges, day_range, in_any, ranges, ranges_read, union_read
from platform_assets.quality.gates import MovedKeys
from platform_assets.records.differences import EXAMPLES, Digest
from platform_assets.records.history import DayRecord, StagedDays
from platform_assets.records.manifest import STAGED, DayContent, Scope, TableChange
from platform_assets.spark.tables.reading import in_scope, out_of_scope, read_days
from platform_assets.spark.tables.schemas import spark_schema


def carried_rows(
    spark: SparkSession, contract: Contract, scope: KeyScope, days: Collection[date], snapshot: LakeSnapshot
) -> DataFrame:
    """Return the rows of some days unchanged, without those of the keys."""
    path = snapshot.platform.lake.table_path(contract.name)
    rows = read_days(spark, path, snapshot.files(contract.name), spark_schema(contract), ranges(days))
    return rows.where(out_of_scope(contract, scope))


def refuse_strangers(contract: Contract, scope: KeyScope, made: DataFrame) -> None:
    """Refuse computed rows of other keys, which would duplicate the copied ones."""
    stranger = made.where(out_of_scope(contract, scope)).select(DAY, *scope.columns).first()
    if stranger is not None:
        keys = ", ".join(f"{name}={stranger[name]}" for name in scope.columns)
        raise _not_separable(contract, scope, stranger[DAY], f"came out with a row of {keys}")


def with_scope(
    platform: Platform,
    contract: Contract,
    scope: KeyScope,
    contents: Mapping[date, DayContent],
    state: Readiness,
    computed: Mapping[date, Digest],
) -> dict[date, DayContent]:
    """Record fingerprint and code of partly computed days, where these hold for the copied rows, too.

    Every staged day says which keys were computed, so that a day with unchanged rows is not computed whole.

    Args:
        contents: records as if all of each day had been computed.

    Raises:
        ScopeError: a day differs although its code and inputs are those that computed all of it.
    """

    def of_whole(day: date, content: DayContent) -> DayContent:
        before, now = state.before[day], state.made_from[day]
        figures = content.figures | {TOGETHER: 0}  # that many days come out right together, whole ones have to show
        code = mixed(before.code_version, platform.code_versions[contract.name])
        rows = computed[day].rows
        told = Scope(keys=scope.texts, rows=rows, made_from=now, code_version=code, reads=before.reads)
        if (before.fingerprint, before.made_by) == (now, platform.version(contract.name)):
            if before.digest != content.digest:
                what = "has other content than when the same code computed it whole from the same inputs"
                raise _not_separable(contract, scope, day, what)
            return content.model_copy(update={"figures": figures, "scope": told})
        return content.model_copy(
            update={"figures": figures, "fingerprint": mixed(before.fingerprint, now), "scope": told}
        )

    return {day: of_whole(day, content) for day, content in contents.items()}


def as_published(change: TableChange) -> TableChange:
    """Return staged days for publication: a day equal to its full computation does not mention keys."""

    def of_day(content: DayContent) -> DayContent:
        told = content.scope
        is_whole = told and (told.made_from, told.code_version) == (content.fingerprint, change.code_version)
        return content.model_copy(update={"scope": None}) if is_whole else content

    return change.model_copy(update={"days": {day: of_day(content) for day, content in change.days.items()}})


def refuse_scoped(staged: StagedDays, again: Mapping[str, Collection[date]]) -> None:
    """Refuse to compute partly copied staged days again: a person reviewed exactly these."""
    for table, days in again.items():
        for day in sorted(days):
            content = staged.of(table).get(day)
            if content is not None and content.scope is not None:
                raise ScopeError(
                    f"{table} {day}, with only some keys computed, or one of its inputs has changed since.",
                    "Drop the stage and compute these keys again.",
                )


def _not_separable(contract: Contract, scope: KeyScope, day: date, what: str) -> ScopeError:
    return ScopeError(
        f"{contract.name} of {day}, computed for {scope} alone, {what}; nothing was staged with it.",
        f"`separable_by` in its contract is wrong: leave {' and '.join(scope.columns)} out of it.",
    )


@dataclass(frozen=True)
class _Made:
    """Inputs and code of some rows of a day.

    Args:
        release: release that shows them; their inputs are not newer.
        reads: version of every table that was read.
        of: keys of the rows; None for all.
        but: keys of rows that were computed again later.
    """

    release: int
    reads: tuple[tuple[str, int], ...]
    of: KeyScope | None
    but: tuple[KeyScope, ...]


def moved_keys(
    spark: SparkSession,
    contract: Contract,
    scope: KeyScope,
    made_from: Mapping[date, str],
    snapshot: LakeSnapshot,
) -> dict[date, MovedKeys]:
    """Return the days whose computed and copied rows would contradict each other.

    Only input days that changed since the copied rows were computed are read, and only a few columns of them.

    Args:
        made_from: fingerprint that each of the days would get; a day that already has it is not read.
        snapshot: snapshot for the computed keys, with the present copied rows.
    """
    records = snapshot.days(contract.name, made_from)
    changed = [record for day, record in records.items() if record.fingerprint != made_from[day]]
    sources = [read for read in contract.inputs if _can_move(snapshot.platform, read, scope)]
    found: dict[date, MovedKeys] = {}
    if not sources:
        return found
    alike: defaultdict[_Made, list[date]] = defaultdict(list)
    for record in changed:
        for made in _made(snapshot.platform, record):
            alike[made].append(record.day)
    for made, days in alike.items():
        for read in sources:
            found |= _Then(spark, contract, scope, snapshot, made, read).moved(days)
    return found


def _can_move(platform: Platform, read: Input, scope: KeyScope) -> bool:
    """Return whether a record of an input can change these keys: not if they are part of its own key."""
    source = platform.catalogue[read.table]
    return not isinstance(read.window, AsOf) and any(
        name in source.column_names and name not in source.key for name in scope.columns
    )


def _made(platform: Platform, record: DayRecord) -> Iterator[_Made]:
    """Return the origins of a day's rows, newest first; one, unless only some keys were computed last."""
    later: tuple[KeyScope, ...] = ()
    while True:
        name = computed_by(platform.lake, record.table, {record.day: record.publication})[record.day]
        shown = platform.ledger.release_of(name)
        if not is_mixed(record.fingerprint, record.code_version):
            yield _Made(shown, tuple(sorted(record.reads.items())), None, later)
            return
        change = made_by(platform.lake, name, record.table, record.day)
        told = change.days[record.day].scope
        if told is not None:
            keys = KeyScope(tuple(sorted(told.keys.items())))
            there = release(platform.lake, shown).versions
            reads = {table: there[table] if at == STAGED else at for table, at in change.reads.items()}
            yield _Made(shown, tuple(sorted(reads.items())), keys, later)
            later = (*later, keys)
        before = platform.ledger.current_days(record.table, at=shown - 1, among=[record.day])
        if record.day not in before:
            return
        record = before[record.day]


@dataclass(frozen=True)
class _Then:
    """An input as the copied rows of some days read it, and its present content."""

    spark: SparkSession
    contract: Contract
    scope: KeyScope
    snapshot: LakeSnapshot
    made: _Made
    read: Input

    def moved(self, days: Collection[date]) -> dict[date, MovedKeys]:
        """Return the moved keys, by day of the table."""
        table, calendar = self.read.table, self.snapshot.calendar
        version = dict(self.made.reads).get(table, -1)
        spans = union_read(self.read.window, days, calendar)
        other = self._other_days([day for span in spans for day in day_range(*span)], version)
        if version < 0 or not other:
            return {}
        path = self.snapshot.platform.lake.table_path(table)
        then = {day: files for day, files in self._files(version).items() if day in other}
        windows = {day: ranges_read(self.read.window, day, calendar) for day in days}
        gone = {day for day, files in then.items() if any((path / file.path).size() is None for file in files)}
        if gone:
            why = "the inputs of the rest of the day no longer exist"
            return {
                day: MovedKeys(table, unknown=why)
                for day, window in windows.items()
                if any(in_any(window, one) for one in gone)
            }
        schema = spark_schema(self.snapshot.platform.catalogue[table])
        now = self.snapshot.files(table)
        found = self._crossing(
            read_days(self.spark, path, then, schema, ranges(other)),
            read_days(self.spark, path, now, schema, ranges(other)),
        )
        moved = {day: [row for row in found if _within(row, window)] for day, window in windows.items()}
        return {day: self._told(rows) for day, rows in moved.items() if rows}

    def _files(self, version: int) -> Files:
        return files_at(self.snapshot.platform.lake, self.read.table, version)

    def _other_days(self, days: Collection[date], version: int) -> set[date]:
        """Return days of the input whose content changed since."""
        platform, table = self.snapshot.platform, self.read.table
        number = self.made.release
        while number > 0 and release(platform.lake, number).versions.get(table, -1) > version:
            number -= 1
        then = platform.ledger.current_days(table, at=number, among=days)
        now = self.snapshot.days(table, days)
        digests = [{day: record.digest for day, record in records.items()} for records in (then, now)]
        return {day for day in days if digests[0].get(day) != digests[1].get(day)}

    def _crossing(self, then: DataFrame, now: DataFrame) -> list[Row]:
        source = self.snapshot.platform.catalogue[self.read.table]
        names = [name for name in self.scope.columns if name in source.column_names]
        mine = in_scope(self.contract, self.scope, source.column_names)
        known = reduce(lambda a, b: a & b, (F.col(name).isNotNull() for name in names))

        def side(rows: DataFrame, prefix: str) -> DataFrame:
            return rows.where(known).select(
                *(F.col(name).alias(f"_key_{at}") for at, name in enumerate(source.row_key)),
                F.col(DAY).alias(f"_{prefix}_day"),
                F.struct(*(F.col(name).cast("string") for name in names)).alias(f"_{prefix}_of"),
                mine.alias(f"_{prefix}_mine"),
            )

        keys = [f"_key_{at}" for at in range(len(source.row_key))]
        both = side(then.where(self._counted(source)), "then").join(side(now, "now"), keys)
        crossing = both.where(F.col("_then_mine") != F.col("_now_mine"))
        other = F.when(F.col("_then_mine"), F.col("_now_of")).otherwise(F.col("_then_of"))
        key = F.struct(*(F.col(name).cast("string") for name in keys))
        by_days = crossing.groupBy("_then_day", "_now_day").agg(
            F.count(F.lit(1)).alias("records"),
            F.min(F.struct(key.alias("key"), "_then_of", "_now_of")).alias("first"),
            F.slice(F.array_sort(F.collect_set(other)), 1, EXAMPLES).alias("others"),
        )
        return by_days.collect()

    def _counted(self, source: Contract) -> Column:
        """Return whether an earlier row is still part of the day's copied rows."""
        counted = F.lit(True) if self.made.of is None else in_scope(self.contract, self.made.of, source.column_names)
        for later in self.made.but:
            if set(later.columns) <= set(source.column_names):
                counted = counted & ~in_scope(self.contract, later, source.column_names)
        return counted

    def _told(self, rows: Collection[Row]) -> MovedKeys:
        source = self.snapshot.platform.catalogue[self.read.table]
        names = [name for name in self.scope.columns if name in source.column_names]
        shown = self.snapshot.platform.masking.shown_key
        first = min((row["first"] for row in rows), key=lambda one: tuple(one["key"]))
        then, now = (shown(source, names, tuple(first[of])) for of in ("_then_of", "_now_of"))
        others = sorted({tuple(other) for row in rows for other in row["others"]})
        return MovedKeys(
            self.read.table,
            sum(row["records"] for row in rows),
            (f"{shown(source, source.row_key, tuple(first['key']))} from {then} to {now}",),
            tuple(shown(source, names, other) for other in others[:EXAMPLES]),
        )


def _within(row: Row, window: Ranges) -> bool:
    return all(in_any(window, day) for day in (row["_then_day"], row["_now_day"]))
