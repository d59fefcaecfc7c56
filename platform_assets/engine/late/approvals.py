"""Move waiting rows from the late queue into raw, in one publication, as an arrival of their own.

A person approves them; or they came too far ahead of their day, which has come.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from typing import Any, Literal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.day_contents import ahead_figures, appended_change, replaced, staged_at, table_change
from platform_assets.engine.erasures import erased_of_arrivals
from platform_assets.engine.late.queue import (
    LateQueueError,
    WithdrawalError,
    choose,
    decide,
    due,
    published_with,
    standing_records,
)
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage, publish_changes
from platform_assets.engine.raw import (
    IngestTurn,
    effective_raw_rows,
    ingest_turn,
    reach_of_moves,
    stage_tombstones,
    undated_files,
)
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.rows_aside import LateRows, LateSelection, late_table
from platform_assets.planning.windows import ranges, within_reach
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival, ArrivalKind, DayContent, Kind, TableChange
from platform_assets.spark.compare.profiles import RawProfile, profile_staged
from platform_assets.spark.raw.markers import rows_taken_back, withdrawals
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage
from platform_assets.words import counted

_Why = Literal["approval", "due"]
"""The kind of the arrivals as which rows enter."""


@dataclass(frozen=True)
class RawOutcome:
    """Change of a raw table by a decision about its arrivals.

    Args:
        arrivals: records of the arrivals whose rows entered raw, or no longer count.
        rows: number of rows that entered raw, or no longer count.
        published: new content of every changed raw day, including days that lost a moved key.
    """

    table: str
    arrivals: tuple[Arrival, ...]
    rows: int
    published: dict[date, DayContent] = field(default_factory=dict)


def approve(
    platform: Platform,
    spark: SparkOnDemand,
    selection: LateSelection,
    author: Author,
    progress: OnProgress = no_progress,
    *,
    by_person: bool = True,
) -> tuple[RawOutcome, ...]:
    """Ingest approved waiting rows into raw; the days that they reach are then stale through data.

    Repeated or killed, it ingests rows once: they leave the queue in the same publication.

    Args:
        by_person: whether a person decides now; otherwise a contract does, by its `deep_restatement_days`, and no
            decision is recorded: the publication has author and reason.

    Returns:
        One result per raw table.

    Raises:
        ContractError: a table cannot take rows of its contract.
        LateQueueError: nothing selected waits, or the queue's files hold other rows than its records say.
    """
    tables = {rows.table for rows in choose(platform, "approval", selection)}
    done: list[RawOutcome] = []
    for contract in platform.catalogue:
        if contract.name in tables:
            progress(Progress("approving", contract.name))
            with ingest_turn(platform, contract, author) as turn, full_disk_explained(contract.name):
                chosen = [rows for rows in choose(platform, "approval", selection) if rows.table == contract.name]
                if chosen:
                    if by_person:
                        decide(platform, "approval", chosen, author)
                    taken = _take(turn, spark(), chosen, "approval")
                    done.append(taken)
                    days = len(taken.published)
                    progress(Progress("approving", contract.name, days, days, rows=taken.rows, finished=True))
    return tuple(done)


def take_due(turn: IngestTurn, spark: SparkOnDemand, progress: OnProgress = no_progress) -> RawOutcome | None:
    """Ingest the waiting rows of a raw table whose day has come.

    Returns:
        None where nothing is due.
    """
    chosen = due(turn.snapshot, turn.contract)
    if not chosen:
        return None
    progress(Progress("taking", turn.contract.name))
    with full_disk_explained(turn.contract.name):
        return _take(turn, spark(), chosen, "due")


def _take(turn: IngestTurn, spark: SparkSession, chosen: Collection[LateRows], why: _Why) -> RawOutcome:
    platform, contract, snapshot = turn.platform, turn.contract, turn.snapshot
    queue = late_table(contract.name)
    days = {rows.day for rows in chosen}
    with new_stage(platform, (contract.name, queue)) as (publication, folders):
        schema = raw_schema(contract)
        waiting = read_days(spark, platform.lake.table_path(queue), snapshot.files(queue), schema, ranges(days))
        stage(waiting.where(~_is_one_of(chosen)), folders[queue])
        own = F.concat(F.lit(_path(contract, publication, "")), "_arrival")  # the date they arrived stays
        stage(waiting.where(_is_one_of(chosen)).withColumn("_arrival", own), folders[contract.name])
        few = sum(rows.rows for rows in chosen) <= MOST_BROADCAST
        stage_tombstones(spark, contract, publication, snapshot, few=few)
        entered = profile_staged(spark, folders[contract.name])
        left = profile_staged(spark, folders[queue])
        arrivals = _arrivals(platform, contract, chosen, publication, entered, why)
        digests = {day: left.digests.get(day, Digest()) for day in days}
        staged = staged_at(platform.lake, queue, publication)
        contents = replaced(snapshot.files(queue), staged, digests, dict.fromkeys(days, ""), ahead_figures(left))
        changes = [
            appended_change(platform, snapshot.release, contract.name, publication, schema.json(), entered),
            table_change(platform.lake, snapshot.release, queue, schema.json(), contents),
        ]
        kind: Kind = "approval" if why == "approval" else "ingest"
        turn.publish(publication, kind, changes, arrivals)
    return RawOutcome(contract.name, arrivals, sum(arrival.taken for arrival in arrivals), changes[0].days)


def _is_one_of(chosen: Collection[LateRows]) -> Column:
    by_arrival: dict[str, list[date]] = {}
    for rows in chosen:
        by_arrival.setdefault(rows.arrival, []).append(rows.day)
    # As text: the JVM cannot read a date before the year 1000 as Python writes it.
    day = F.col(DAY).cast("string")
    parts = [(F.col("_arrival") == arrival) & day.isin(*map(str, days)) for arrival, days in by_arrival.items()]
    return reduce(lambda a, b: a | b, parts)


def _path(contract: Contract, publication: str, origin: str) -> str:
    return f"{late_table(contract.name).replace('.', '/')}/{publication}/{origin}"


def _arrivals(
    platform: Platform,
    contract: Contract,
    chosen: Collection[LateRows],
    publication: str,
    entered: RawProfile,
    why: _Why,
) -> tuple[Arrival, ...]:
    counted: dict[str, int] = {}
    for rows in chosen:
        counted[rows.arrival] = counted.get(rows.arrival, 0) + rows.rows
    made: list[Arrival] = []
    for origin, rows_of_it in sorted(counted.items()):
        file = platform.ledger.arrival(contract.name, origin)
        assert file is not None
        path = _path(contract, publication, origin)
        if entered.taken.get(path, 0) != rows_of_it:
            raise LateQueueError(
                f"{late_table(contract.name)} has {rows_of_it:,} rows of {origin}, but {entered.taken.get(path, 0):,} "
                "of them were staged for raw; none of them was published.",
                "Run it again; if it stays so, restore the table's files from a backup.",
            )
        made.append(_derived(file, path, why, landed=rows_of_it, taken=rows_of_it))
    return tuple(made)


def withdraw(
    platform: Platform,
    spark: SparkOnDemand,
    paths: Sequence[str],
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[RawOutcome, ...]:
    """Have every table computed as if arrivals had never come; the days they reached are then stale through data.

    Approved rows of these arrivals are withdrawn with them, and their rows in the queue never enter. It is one
    publication, so either everything is withdrawn or nothing. The same content can be delivered again under another
    name.

    Args:
        paths: arrivals: files below the landing root, or the names under which waiting rows entered.

    Returns:
        One result per raw table that took any.

    Raises:
        WithdrawalError: one was never ingested, was refused whole, is a withdrawal itself, or was withdrawn before.
        UnknownTableError: no domain declares any of the tables that ingested one.
    """
    with ExitStack() as turns:
        tables = list(standing_records(platform, paths))
        for table in tables:
            turns.enter_context(ingest_turn(platform, platform.catalogue[table], author))
        # Another process may have withdrawn some before our turn; nothing else can have changed.
        parts = {table: some for table, some in standing_records(platform, paths).items() if table in tables}
        snapshot = LakeSnapshot.now(platform)
        with new_stage(platform, tuple(parts)) as (publication, folders):
            done: list[RawOutcome] = []
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
) -> tuple[RawOutcome, list[TableChange]]:
    """Return the withdrawal of some arrivals of one table, staged if raw has rows of them."""
    platform = snapshot.platform
    contract = platform.catalogue[parts[0].table]
    rows: Mapping[str, int] = {}
    changes: list[TableChange] = []
    if any(part.taken for part in parts):
        rows = _stage_markers(spark(), contract, parts, snapshot, folder)
        added = profile_staged(spark(), folder)
        schema = raw_schema(contract).json()
        changes = [appended_change(platform, snapshot.release, contract.name, publication, schema, added)]
    below = f"withdrawn/{contract.name.partition('.')[2]}/{publication}"
    arrivals = tuple(
        _derived(part, f"{below}/{part.path}", "withdrawal", notes=(f"{what} of {part.path} count no more",))
        for part in parts
        for what in [counted(rows.get(part.path, 0), "row")]
    )
    return RawOutcome(contract.name, arrivals, sum(rows.values()), changes[0].days if changes else {}), changes


def _stage_markers(
    spark: SparkSession,
    contract: Contract,
    parts: Collection[ArrivalRecord],
    snapshot: LakeSnapshot,
    folder: Location,
) -> dict[str, int]:
    """Stage withdrawal markers of some arrivals, and return how many rows of each no longer count."""
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
            "Run `platform-assets admin ledger --rebuild` and try again; if it stays so, restore the table from a "
            "backup.",
        )
    # Days of later arrivals may have tombstones of the versions that are now withdrawn.
    held = {day for (day, _), rows in found.items() if rows}
    wide = days | within_reach(held, reach_of_moves(contract, snapshot))
    files = snapshot.files(contract.name)
    is_snapshot = contract.source is not None and contract.source.replaces == "table"
    # Days with later records have tombstones of deletes without a day, and of snapshots without their row, too.
    if is_snapshot or undated_files({day: files[day] for day in held}, contract):
        wide |= {day for day, record in snapshot.days(contract.name).items() if record.figures.get("tombstones")}
    raw = effective_raw_rows(spark, contract, wide, snapshot)
    stage(withdrawals(raw, paths, raw_schema(contract)), folder)
    return counts


def _derived(origin: ArrivalRecord, path: str, kind: ArrivalKind, **counts: Any) -> Arrival:
    """Return an arrival derived from another one: approved, due or withdrawn rows."""
    same = {name: getattr(origin, name) for name in ("table", "arrival_date", "size", "sha256", "modified_ns")}
    return Arrival(path=path, kind=kind, origin=origin.path, **same, **counts)
