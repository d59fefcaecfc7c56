"""Withdrawals: a bad delivery taken out again, as an arrival of its own; raw keeps its rows and they count no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import appended_change
from platform_assets.engine.erasures import erased_of_arrivals
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage
from platform_assets.engine.raw.tombstones import effective_raw_rows, reach_of_moves
from platform_assets.engine.raw.turn import IngestTurn, ingest_turn
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.windows import within_reach
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival, DayContent
from platform_assets.spark.compare.profiles import profile_raw
from platform_assets.spark.raw.withdrawals import taken_back, withdrawals
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage
from platform_assets.words import counted


class WithdrawalError(PlatformError):
    """There is nothing to take back."""


@dataclass(frozen=True)
class Withdrawal:
    """What a withdrawal did.

    Args:
        table: the raw table.
        arrivals: the withdrawals recorded: of the arrival, and of everything as which waiting rows of it entered.
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
    path: str,
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[Withdrawal, ...]:
    """Have every table computed as if an arrival had never come; the days it reached are then stale through data.

    What entered of its waiting rows goes with it, and what still waits in the queue never enters. The same content can
    be delivered again under another name.

    Args:
        spark: gives the session; not called where raw has no row of the arrival.
        path: of the arrival: a file below the landing root, or one as which waiting rows entered.
        author: who withdraws it, and why.
        progress: told when a table begins and when it is finished.

    Returns:
        One result per raw table that took it.

    Raises:
        WithdrawalError: it was never taken, was refused whole, is a withdrawal itself, or was withdrawn before.
        UnknownTableError: no domain declares any of the tables that took it.
    """
    done: list[Withdrawal] = []
    for table in [arrival.table for arrival in _taken(platform, path)]:
        progress(Progress("withdrawing", table))
        with ingest_turn(platform, platform.catalogue[table], author) as turn, full_disk_explained(table):
            for arrival in _taken(platform, path):
                if arrival.table == table:  # or somebody else withdrew it from there meanwhile
                    done.append(_withdraw(turn, spark, [arrival, *_entered_later(platform, arrival)]))
                    days = len(done[-1].published)
                    progress(Progress("withdrawing", table, days, days, rows=done[-1].rows, finished=True))
    return tuple(done)


def _taken(platform: Platform, path: str) -> list[ArrivalRecord]:
    """The newest record of an arrival in each table that took it and from which it was not withdrawn yet.

    Raises:
        WithdrawalError: there is none.
    """
    arrivals = platform.ledger.arrivals()
    newest = {arrival.table: arrival for arrival in arrivals if arrival.path == path}
    if not newest:
        raise WithdrawalError(
            f"No arrival {path!r} was ever taken.",
            did_you_mean(path, {arrival.path for arrival in arrivals})
            + "Name a file as <folder>/<arrival date>/<file>, as it lies in the landing area.",
        )
    gone = {arrival.table: arrival for arrival in arrivals if arrival.kind == "withdrawal" and arrival.origin == path}
    counts = [
        arrival
        for arrival in newest.values()
        if arrival.reason is None and arrival.kind != "withdrawal" and arrival.table not in gone
    ]
    if not counts:
        raise _nothing_counts(platform, path, next(iter(newest.values())), next(iter(gone.values()), None))
    # A table that no domain declares any more keeps no other from being mended.
    return [arrival for arrival in counts if arrival.table in platform.catalogue.names] or counts


def _nothing_counts(
    platform: Platform, path: str, arrival: ArrivalRecord, withdrawn: ArrivalRecord | None
) -> WithdrawalError:
    """Why nothing can be taken back of an arrival that is on record."""
    if withdrawn is not None:
        made = platform.ledger.publication(withdrawn.publication)
        assert made is not None
        return WithdrawalError(
            f"{path} was withdrawn before, on {made.created_at:%Y-%m-%d} by {made.who}: {made.why}.",
            "Nothing is left to take back.",
        )
    if arrival.kind == "withdrawal":
        return WithdrawalError(
            f"{path} is itself the withdrawal of {arrival.origin}.",
            "Deliver that file again under another name if its rows are to count after all.",
        )
    return WithdrawalError(
        f"{path} was refused whole, so nothing of it counts: it {arrival.reason}.",
        "Nothing needs to be taken back; deliver a repaired file under the same name.",
    )


def _entered_later(platform: Platform, arrival: ArrivalRecord) -> list[ArrivalRecord]:
    """What entered of the rows that had to wait, because a person approved them or their day had come."""
    arrivals = platform.ledger.arrivals(arrival.table)
    gone = {other.origin for other in arrivals if other.kind == "withdrawal"}
    entered = [other for other in arrivals if other.kind in ("approval", "due") and other.path not in gone]
    return [other for other in entered if other.origin == arrival.path]


def _withdraw(turn: IngestTurn, spark: SparkOnDemand, parts: Sequence[ArrivalRecord]) -> Withdrawal:
    platform, contract, snapshot = turn.platform, turn.contract, turn.snapshot
    with new_stage(platform, (contract.name,)) as (publication, folders):
        folder = folders[contract.name]
        rows: Mapping[str, int] = {}
        changes = []
        if any(part.taken for part in parts):
            rows = _stage_markers(platform, spark(), contract, parts, snapshot, folder)
            added = profile_raw(read_staged(spark(), folder))
            schema = raw_schema(contract).json()
            changes = [appended_change(platform, snapshot.release, contract.name, publication, schema, added)]
        arrivals = tuple(_arrival(part, publication, rows.get(part.path, 0)) for part in parts)
        turn.publish(publication, "withdrawal", changes, arrivals)
    return Withdrawal(contract.name, arrivals, sum(rows.values()), changes[0].days if changes else {})


def _stage_markers(
    platform: Platform,
    spark: SparkSession,
    contract: Contract,
    parts: Collection[ArrivalRecord],
    snapshot: LakeSnapshot,
    folder: Location,
) -> dict[str, int]:
    """Stage what takes some arrivals back, and return how many rows of each count no more."""
    paths = [part.path for part in parts]
    days = _published_with(platform, contract.name, parts)
    taken = taken_back(effective_raw_rows(platform, spark, contract, days, snapshot), paths)
    counts: dict[str, int] = {}
    for (_, path), rows in taken.items():
        counts[path] = counts.get(path, 0) + rows
    erased = erased_of_arrivals(platform, contract.name)
    if lost := [part.path for part in parts if counts.get(part.path, 0) + erased[part.path] != part.taken]:
        raise WithdrawalError(
            f"{contract.name} does not have the rows that were taken of {lost[0]}; nothing was withdrawn.",
            "Run `platform-assets ledger rebuild` and try again; if it stays so, restore the table from a backup.",
        )
    # Days of later arrivals may have been told since of the versions that are now taken back.
    held = {day for (day, _), rows in taken.items() if rows}
    wide = days | within_reach(held, reach_of_moves(contract, snapshot))
    raw = effective_raw_rows(platform, spark, contract, wide, snapshot)
    stage(withdrawals(raw, paths, raw_schema(contract)), folder)
    return counts


def _published_with(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    """Days of a raw table that were published together with some arrivals: all that may hold rows of them."""
    made = [platform.ledger.publication(name) for name in {part.publication for part in parts}]
    return {day.day for record in made if record is not None for day in record.days if day.table == table}


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
