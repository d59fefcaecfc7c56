"""Waiting rows leave the late queue and enter raw, in one publication, as an arrival of their own.

A person approves them; or they had come too far ahead of their day, and that has come.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.day_contents import ahead_figures, appended_change, replaced, schema_to_replace, staged_at
from platform_assets.engine.late.queue import LateQueueError, choose, decide, due
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage
from platform_assets.engine.raw.tombstones import stage_tombstones, stage_undated
from platform_assets.engine.raw.turn import IngestTurn, ingest_turn
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.late_queue import LateRows, LateSelection, late_table
from platform_assets.planning.windows import ranges
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import Arrival, DayContent, Kind, TableChange
from platform_assets.spark.compare.profiles import RawProfile, profile_raw
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_days, read_staged
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage

_Why = Literal["approval", "due"]
"""The kind of the arrivals as which rows enter."""


@dataclass(frozen=True)
class Approval:
    """What became of waiting rows.

    Args:
        arrivals: as which the rows entered raw, one for each arrival that brought them.
        published: the new content of every raw day touched, those that lost a moved key included.
    """

    table: str
    arrivals: tuple[Arrival, ...]
    published: dict[date, DayContent]


def approve(
    platform: Platform,
    spark: SparkOnDemand,
    selection: LateSelection,
    author: Author,
    progress: OnProgress = no_progress,
    *,
    by_person: bool = True,
) -> tuple[Approval, ...]:
    """Take waiting rows into raw as a person decides; the days they reach are then stale through data.

    However often it is repeated or killed, rows enter once: what entered has left the queue in the same publication.

    Args:
        spark: gives the session; not called where nothing waits.
        progress: told when a table begins and when it is finished.
        by_person: whether somebody decides it now; otherwise a contract does, by its `deep_restatement_days`, and no
            decision is written down: the publication says who took the rows, and why.

    Returns:
        One result per raw table.

    Raises:
        UnknownTableError: there is no such table.
        ContractError: a table cannot take rows of its contract.
        LateQueueError: nothing selected waits, or the queue's files hold other rows than its records say.
    """
    tables = {rows.table for rows in choose(platform, "approval", selection)}
    done: list[Approval] = []
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
                    rows = sum(arrival.taken for arrival in taken.arrivals)
                    days = len(taken.published)
                    progress(Progress("approving", contract.name, days, days, rows=rows, finished=True))
    return tuple(done)


def take_due(turn: IngestTurn, spark: SparkOnDemand, progress: OnProgress = no_progress) -> Approval | None:
    """Take the rows of a raw table into it whose day has come since they arrived too far ahead of it.

    Args:
        spark: gives the session; not called where nothing is due.

    Returns:
        None where nothing is due.

    Raises:
        LateQueueError: the queue's files hold other rows than its records say.
    """
    chosen = due(turn.snapshot, turn.contract)
    if not chosen:
        return None
    progress(Progress("taking", turn.contract.name))
    with full_disk_explained(turn.contract.name):
        return _take(turn, spark(), chosen, "due")


def _take(turn: IngestTurn, spark: SparkSession, chosen: Collection[LateRows], why: _Why) -> Approval:
    platform, contract, snapshot = turn.platform, turn.contract, turn.snapshot
    queue = late_table(contract.name)
    days = {rows.day for rows in chosen}
    with new_stage(platform, (contract.name, queue)) as (publication, folders):
        schema = raw_schema(contract)
        waiting = read_days(spark, platform.lake.table_path(queue), snapshot.files(queue), schema, ranges(days))
        stage(waiting.where(~_is_one_of(chosen)), folders[queue])
        stage(_as_taken(waiting.where(_is_one_of(chosen)), contract, publication), folders[contract.name])
        few = sum(rows.rows for rows in chosen) <= MOST_BROADCAST
        stage_tombstones(spark, contract, publication, folders[contract.name], snapshot, few=few)
        stage_undated(spark, contract, publication, folders[contract.name], snapshot)
        entered = profile_raw(read_staged(spark, folders[contract.name]))
        left = profile_raw(read_staged(spark, folders[queue]))
        arrivals = _arrivals(platform, contract, chosen, publication, entered, why)
        changes = [
            appended_change(platform, snapshot.release, contract.name, publication, schema.json(), entered),
            TableChange(
                table=queue,
                schema_string=schema.json(),
                days=_left(queue, snapshot, publication, days, left),
                replaces_schema=schema_to_replace(platform.lake, snapshot.release, queue, schema.json()),
            ),
        ]
        kind: Kind = "approval" if why == "approval" else "ingest"
        turn.publish(publication, kind, changes, arrivals)
    return Approval(contract.name, arrivals, changes[0].days)


def _is_one_of(chosen: Collection[LateRows]) -> Column:
    by_arrival: dict[str, list[date]] = {}
    for rows in chosen:
        by_arrival.setdefault(rows.arrival, []).append(rows.day)
    # As text: a date before the year 1000 is none to the JVM as Python writes it.
    day = F.col(DAY).cast("string")
    parts = [(F.col("_arrival") == arrival) & day.isin(*map(str, days)) for arrival, days in by_arrival.items()]
    return reduce(lambda a, b: a | b, parts)


def _as_taken(rows: DataFrame, contract: Contract, publication: str) -> DataFrame:
    """Return the rows as those of an arrival of their own; the date they arrived, which may order them, stays."""
    return rows.withColumn("_arrival", F.concat(F.lit(_path(contract, publication, "")), "_arrival"))


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
        made.append(
            Arrival(
                table=contract.name,
                path=path,
                arrival_date=file.arrival_date,
                size=file.size,
                sha256=file.sha256,
                modified_ns=file.modified_ns,
                landed=rows_of_it,
                taken=rows_of_it,
                kind=why,
                origin=origin,
            )
        )
    return tuple(made)


def _left(
    queue: str, snapshot: LakeSnapshot, publication: str, days: Collection[date], left: RawProfile
) -> dict[date, DayContent]:
    digests = {day: left.digests.get(day, Digest()) for day in days}
    return replaced(
        snapshot.files(queue),
        staged_at(snapshot.platform.lake, queue, publication),
        digests,
        dict.fromkeys(days, ""),
        ahead_figures(left),
    )
