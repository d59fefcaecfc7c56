"""Keys on several raw days: publish tombstones with the rows, so that days show which newer versions others have.

The contract says how far apart days are compared. Raw days record how far they were compared, so that a contract that
looks farther has them compared again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.day_contents import (
    COMPARED,
    FARTHEST,
    Files,
    appended,
    staged_at,
    table_change,
    unchanged,
)
from platform_assets.engine.erasures import erased_keys
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage, publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.schema_changes import refuse_deliveries
from platform_assets.lakehouse.delta.statistics import bounded_key, may_lack, may_share_keys
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.releases import release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.rows_aside import late_table
from platform_assets.planning.windows import ranges, within_reach
from platform_assets.records.erased_keys import ErasedKeys
from platform_assets.records.manifest import Arrival, DayContent, Kind, TableChange
from platform_assets.records.raw_rows import TOMBSTONE
from platform_assets.spark.compare.in_files import at_hand, may_move
from platform_assets.spark.compare.profiles import profile_staged
from platform_assets.spark.raw.markers import (
    VERSION,
    absences,
    as_raw,
    effective_rows,
    is_undated,
    reached_deletes,
    tombstones,
    tombstones_of_deletes,
    waiting_deletes,
)
from platform_assets.spark.raw.versions import with_places
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import kept_frames, read_days, read_staged
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage


class IngestTurn:
    """The holder of the ingest lock of a raw table.

    No other process publishes rows of it. If the lock is lost, another may: then everything listed, chosen or compared
    here is outdated, and the next publication of the turn fails.
    """

    def __init__(self, platform: Platform, contract: Contract, author: Author) -> None:
        self.platform = platform
        self.contract = contract
        self.author = author
        self.snapshot = LakeSnapshot.now(platform)

    @cached_property
    def erased(self) -> ErasedKeys | None:
        """Return what recognizes erased rows, which must not come back. A new erasure waits for the end of the turn."""
        return erased_keys(self.platform, self.contract)

    def publish(
        self, publication: str, kind: Kind, changes: Sequence[TableChange], arrivals: Sequence[Arrival] = ()
    ) -> None:
        """Publish over the state that the turn has read; what comes next reads this.

        Raises:
            LockLostError: another process has published rows of the table, or late ones, since the turn began.
        """
        read = self.snapshot.reads([self.contract.name, late_table(self.contract.name)])
        number = publish_changes(self.platform, publication, kind, changes, self.author, arrivals, on_versions=read)
        self.snapshot = LakeSnapshot(self.platform, release(self.platform.lake, number))


@contextmanager
def ingest_turn(platform: Platform, contract: Contract, author: Author) -> Iterator[IngestTurn]:
    """Take the ingest lock of a raw table, over the newest published state.

    Raises:
        LockTimeoutError: another process held the lock for too long; the message says which.
        ContractError: the table cannot take rows of its contract.
        CircuitOpenError: a person stopped the table.
    """
    refuse_stopped(platform, "ingest", [contract.name])
    with ingest_lock(platform.lake, contract.name):
        platform.settle()
        turn = IngestTurn(platform, contract, author)
        refuse_deliveries(turn.snapshot, contract)
        yield turn


def stage_tombstones(
    spark: SparkSession, contract: Contract, publication: str, snapshot: LakeSnapshot, *, few: bool
) -> Mapping[str, int]:
    """Stage the tombstones that staged rows of a raw table need.

    A day gets one if a key left it within the contract's `moves_within_days`, or if a delete without event time removes
    its record. For a table of snapshots, also mark the days for which they have no row.

    Returns:
        How many keys of arriving deletes without event time have no record yet, by arrival.
    """
    assert contract.source is not None
    folder = snapshot.platform.lake.stage_path(contract.name, publication)
    if contract.source.replaces == "table":
        _stage_absences(spark, contract, folder, snapshot)
    if contract.moves_within_days:
        _stage_moves(spark, contract, publication, folder, snapshot, few=few)
    return _stage_undated(spark, contract, publication, folder, snapshot) if contract.takes_undated else {}


def _stage_moves(
    spark: SparkSession, contract: Contract, publication: str, folder: Location, snapshot: LakeSnapshot, *, few: bool
) -> None:
    platform = snapshot.platform
    staged = staged_at(platform.lake, contract.name, publication)
    near = within_reach(staged, contract.moves_within_days)
    there = {day: files for day, files in snapshot.files(contract.name).items() if day in near}
    withdrawn = has_withdrawals(contract.name, near, snapshot)
    if not withdrawn:  # which say of other files' rows that they count no more
        there = may_share_keys(there, staged, bounded_key(contract))
        path = platform.lake.table_path(contract.name)
        new, old = at_hand(spark, path, staged), at_hand(spark, path, there)
        if contract.source and not contract.source.replaces and new and old and not may_move(new, old, contract):
            return
    present: DataFrame | None = None
    if there:
        rows = read_days(spark, platform.lake.table_path(contract.name), there, raw_schema(contract), ranges(there))
        present = with_places(effective_rows(rows) if withdrawn else rows).where(F.col("_kind") != TOMBSTONE)
    arriving = with_places(read_staged(spark, folder))  # approved rows may have waited since before raw had their place
    with kept_frames() as keep:
        tombstone_rows = tombstones(arriving, present, contract, keep, few=few)
        if tombstone_rows is not None:
            stage(tombstone_rows.select(*raw_schema(contract).fieldNames()), folder)


def _stage_absences(spark: SparkSession, contract: Contract, folder: Location, snapshot: LakeSnapshot) -> None:
    lying = read_staged(spark, folder)
    if files := snapshot.files(contract.name):
        lying = lying.unionByName(effective_raw_rows(spark, contract, files, snapshot))
    with kept_frames() as keep:
        whose = keep(lying.select(DAY, "_arrival", "_arrival_date", "_kind").distinct())
        stage(as_raw(absences(whose, contract), raw_schema(contract)), folder)


def settle_moves(turn: IngestTurn, spark: SparkOnDemand) -> dict[date, DayContent]:
    """Compare all raw days again if the contract looks farther than before.

    Returns:
        The new content of every day with rows; none where all have been compared as far as the contract says.
    """
    platform, contract, snapshot = turn.platform, turn.contract, turn.snapshot
    within_days = contract.moves_within_days
    days = {day: record for day, record in snapshot.days(contract.name).items() if record.rows}
    if all(record.figures.get(COMPARED, 0) >= within_days for record in days.values()):
        return {}
    with new_stage(platform, (contract.name,)) as (publication, folders), kept_frames() as keep:
        folder = folders[contract.name]
        raw = with_places(effective_raw_rows(spark(), contract, days, snapshot))
        tombstone_rows = tombstones(raw.where(F.col("_kind") != TOMBSTONE), None, contract, keep)
        contents = unchanged(snapshot.files(contract.name), days)
        if tombstone_rows is not None:
            version = [DAY, *contract.key, *VERSION]
            told = raw.where(F.col("_kind") == TOMBSTONE).select(*version)
            stage(tombstone_rows.select(*raw_schema(contract).fieldNames()).join(told, version, "left_anti"), folder)
            staged = staged_at(platform.lake, contract.name, publication)
            added = profile_staged(spark(), folder)
            contents |= appended(snapshot.files(contract.name), staged, added, days, within_days)
        for day, content in contents.items():
            farthest = max(content.figures.get(FARTHEST, 0), within_days)
            figures = {**content.figures, COMPARED: within_days, FARTHEST: farthest}
            contents[day] = content.model_copy(update={"figures": figures})
        schema = raw_schema(contract).json()
        change = table_change(platform.lake, snapshot.release, contract.name, schema, contents, {})
        turn.publish(publication, "ingest", [change])
    return contents


def effective_raw_rows(
    spark: SparkSession, contract: Contract, days: Collection[date], snapshot: LakeSnapshot
) -> DataFrame:
    """Return the rows of some raw days that count: all, without withdrawn ones."""
    path = snapshot.platform.lake.table_path(contract.name)
    rows = read_days(spark, path, snapshot.files(contract.name), raw_schema(contract), ranges(days))
    return effective_rows(rows) if has_withdrawals(contract.name, days, snapshot) else rows


def reach_of_moves(contract: Contract, snapshot: LakeSnapshot) -> int:
    """Return how far from a version's day its tombstones can be: as far as contracts have ever looked."""
    compared = (record.figures.get(FARTHEST, 0) for record in snapshot.days(contract.name).values())
    return max(contract.moves_within_days, *compared, 0)


def has_withdrawals(table: str, days: Collection[date], snapshot: LakeSnapshot) -> bool:
    """Return whether rows were withdrawn from some raw days, by their manifests."""
    loaded = snapshot.days(table)
    return any(loaded[day].figures.get("withdrawals") for day in days if day in loaded)


def _stage_undated(
    spark: SparkSession, contract: Contract, publication: str, folder: Location, snapshot: LakeSnapshot
) -> Mapping[str, int]:
    """Stage a tombstone on every day whose record a delete without event time removes.

    File statistics show whether there is such a delete, so other deliveries cost nothing.
    """
    platform = snapshot.platform
    staged, files = staged_at(platform.lake, contract.name, publication), snapshot.files(contract.name)
    bringing, deletes = undated_files(staged, contract), undated_files(files, contract)
    deletes = may_share_keys(deletes, staged, bounded_key(contract))
    if not (bringing or deletes):
        return {}
    ahead, late = contract.ahead_days, contract.restatement_window_days
    near = {
        day: of_day for day, of_day in files.items() if any(-ahead <= (came - day).days <= late for came in bringing)
    }

    def rows_of(some: Files) -> DataFrame:
        path, schema = platform.lake.table_path(contract.name), raw_schema(contract)
        return read_days(spark, path, some, schema, ranges(some))

    with kept_frames() as keep:
        arriving = read_staged(spark, folder)
        new, old = arriving.where(is_undated(contract)), effective_rows(rows_of(deletes)).where(is_undated(contract))
        there = rows_of(may_share_keys(near, bringing, bounded_key(contract)))
        of_new = reached_deletes(new, arriving.unionByName(there), contract)
        pairs = keep(of_new.unionByName(reached_deletes(old, arriving, contract)))
        stage(tombstones_of_deletes(pairs).select(*raw_schema(contract).fieldNames()), folder)
        return waiting_deletes(new, pairs, contract) if bringing else {}


def undated_files(files: Files, contract: Contract) -> Files:
    """Return the files of a raw table that can hold deletes without event time."""
    if not contract.takes_undated or contract.event_time is None:
        return {}
    some = {day: tuple(file for file in of_day if may_lack(file, contract.event_time)) for day, of_day in files.items()}
    return {day: of_day for day, of_day in some.items() if of_day}
