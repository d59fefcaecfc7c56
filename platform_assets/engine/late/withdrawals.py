"""Withdrawals: bad deliveries taken out again, as arrivals of their own; raw keeps their rows, which count no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import appended_change
from platform_assets.engine.erasures import erased_of_arrivals
from platform_assets.engine.late.named_arrivals import WithdrawalError, published_with, standing_records
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage, publish_changes
from platform_assets.engine.raw.tombstones import effective_raw_rows, reach_of_moves, undated_files
from platform_assets.engine.raw.turn import ingest_turn
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.late_queue import late_table
from platform_assets.planning.windows import within_reach
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival, DayContent, TableChange
from platform_assets.spark.compare.profiles import profile_raw
from platform_assets.spark.raw.markers import rows_taken_back, withdrawals
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage
from platform_assets.words import counted


@dataclass(frozen=True)
class Withdrawal:
    """What a withdrawal did.

    Args:
        arrivals: the withdrawals recorded: of the arrivals, and of everything as which waiting rows of them entered.
        rows: of raw, that count no more.
        published: the new content of every raw day touched.
    """

    table: str
    arrivals: tuple[Arrival, ...]
    rows: int
    published: dict[date, DayContent] = field(default_factory=dict)


def withdraw(
    platform: Platform,
    spark: SparkOnDemand,
    paths: Sequence[str],
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[Withdrawal, ...]:
    """Have every table computed as if arrivals had never come; the days they reached are then stale through data.

    What entered of their waiting rows goes with them, and what still waits in the queue never enters. All of it is one
    publication, so either everything is withdrawn or nothing. The same content can be delivered again under another
    name.

    Args:
        spark: gives the session; not called where raw has no row of the arrivals.
        paths: of the arrivals: files below the landing root, or those as which waiting rows entered.
        progress: told when a table begins and when it is finished.

    Returns:
        One result per raw table that took any.

    Raises:
        WithdrawalError: one was never taken, was refused whole, is a withdrawal itself, or was withdrawn before.
        UnknownTableError: no domain declares any of the tables that took one.
    """
    with ExitStack() as turns:
        tables = list(standing_records(platform, paths))
        for table in tables:
            turns.enter_context(ingest_turn(platform, platform.catalogue[table], author))
        # Somebody else may have withdrawn some before it was our turn; nothing else of them can have come meanwhile.
        parts = {table: some for table, some in standing_records(platform, paths).items() if table in tables}
        snapshot = LakeSnapshot.now(platform)
        with new_stage(platform, tuple(parts)) as (publication, folders):
            done: list[Withdrawal] = []
            changes: list[TableChange] = []
            for table, some in parts.items():
                progress(Progress("withdrawing", table))
                with full_disk_explained(table):
                    withdrawal, change = _withdrawn(spark, snapshot, publication, folders[table], some)
                done.append(withdrawal)
                changes += change
                days = len(withdrawal.published)
                progress(Progress("withdrawing", table, days, days, rows=withdrawal.rows, finished=True))
            arrivals = [arrival for withdrawal in done for arrival in withdrawal.arrivals]
            read = snapshot.reads([name for table in parts for name in (table, late_table(table))])
            publish_changes(platform, publication, "withdrawal", changes, author, arrivals, on_versions=read)
    return tuple(done)


def _withdrawn(
    spark: SparkOnDemand,
    snapshot: LakeSnapshot,
    publication: str,
    folder: Location,
    parts: Sequence[ArrivalRecord],
) -> tuple[Withdrawal, list[TableChange]]:
    """Return what takes some arrivals of one table back, staged where raw has rows of them."""
    platform = snapshot.platform
    contract = platform.catalogue[parts[0].table]
    rows: Mapping[str, int] = {}
    changes: list[TableChange] = []
    if any(part.taken for part in parts):
        rows = _stage_markers(spark(), contract, parts, snapshot, folder)
        added = profile_raw(read_staged(spark(), folder))
        schema = raw_schema(contract).json()
        changes = [appended_change(platform, snapshot.release, contract.name, publication, schema, added)]
    arrivals = tuple(_arrival(part, publication, rows.get(part.path, 0)) for part in parts)
    return Withdrawal(contract.name, arrivals, sum(rows.values()), changes[0].days if changes else {}), changes


def _stage_markers(
    spark: SparkSession,
    contract: Contract,
    parts: Collection[ArrivalRecord],
    snapshot: LakeSnapshot,
    folder: Location,
) -> dict[str, int]:
    """Stage what takes some arrivals back, and return how many rows of each count no more."""
    platform = snapshot.platform
    paths = [part.path for part in parts]
    days = published_with(platform, contract.name, parts)
    found = rows_taken_back(effective_raw_rows(spark, contract, days, snapshot), paths)
    counts: dict[str, int] = {}
    for (_, path), rows in found.items():
        counts[path] = counts.get(path, 0) + rows
    erased = erased_of_arrivals(platform, contract.name)
    if lost := [part.path for part in parts if counts.get(part.path, 0) + erased[part.path] != part.taken]:
        raise WithdrawalError(
            f"{contract.name} does not have the rows that were taken of {lost[0]}; nothing was withdrawn.",
            "Run `platform-assets ledger rebuild` and try again; if it stays so, restore the table from a backup.",
        )
    # Days of later arrivals may have been told since of the versions that are now taken back.
    held = {day for (day, _), rows in found.items() if rows}
    wide = days | within_reach(held, reach_of_moves(contract, snapshot))
    files = snapshot.files(contract.name)
    is_snapshot = contract.source is not None and contract.source.replaces == "table"
    # Days with later records were told of deletes without their day, and of snapshots without a row of them, too.
    if is_snapshot or undated_files({day: files[day] for day in held}, contract):
        wide |= {day for day, record in snapshot.days(contract.name).items() if record.figures.get("tombstones")}
    raw = effective_raw_rows(spark, contract, wide, snapshot)
    stage(withdrawals(raw, paths, raw_schema(contract)), folder)
    return counts


def _arrival(part: ArrivalRecord, publication: str, rows: int) -> Arrival:
    return Arrival(
        table=part.table,
        path=f"withdrawn/{part.table.partition('.')[2]}/{publication}/{part.path}",
        arrival_date=part.arrival_date,
        size=part.size,
        sha256=part.sha256,
        modified_ns=part.modified_ns,
        notes=(f"{counted(rows, 'row')} of {part.path} count no more",),
        kind="withdrawal",
        origin=part.path,
    )
