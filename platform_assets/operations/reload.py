"""Reload: start a raw table again, so that its deliveries are ingested by another contract.

One publication empties raw, its refused and late rows and all tables computed from them, and says that earlier arrivals
no longer count. Then it is like a fresh installation: the next ingest takes all deliveries again, and the next refresh
computes from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.contracts import Contract
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.pending import landed_files
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import in_turns, publish_changes
from platform_assets.engine.results import IngestResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta.log import files_of_days, table_snapshot
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.operations.plan_record import ends_of
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.rows_aside import late_table
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import RELOAD, ArrivalRecord
from platform_assets.records.manifest import Arrival, DayContent, TableChange, new_publication
from platform_assets.sources.landing import LandedFile, hashed

if TYPE_CHECKING:
    from platform_assets.spark.session.on_demand import SparkOnDemand

_NAMED = 3
"""Files that an error names."""


@dataclass(frozen=True)
class Reload:
    """Result of a reload, done or planned.

    Args:
        files: number of files in the landing area, ingested and refused ones included.
        days: days that are as if never computed until they are recomputed, by table, oldest first.
        release: release that shows it; None before it is done.
        taken: result of ingesting the deliveries; None before it is done.
    """

    table: str
    files: int
    before: int
    days: Mapping[str, tuple[date, ...]]
    rows: Mapping[str, int]
    release: int | None = None
    taken: IngestResult | None = None


def planned_reload(platform: Platform, table: str, progress: OnProgress = no_progress) -> Reload:
    """Return what a reload would do, without changing anything."""
    platform.settle()
    contract = _raw(platform, table)
    files = _require_files(platform, contract, progress)
    return _planned(platform, contract, files)[0]


def reload(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    author: Author,
    progress: OnProgress = no_progress,
) -> Reload:
    """Start a raw table again and ingest all its deliveries by the present contract.

    Readers see nothing of the tables computed from it until these are refreshed; earlier releases stay. If the process
    ends for any reason, the table is unchanged, or emptied with its deliveries waiting for the next ingest.

    Raises:
        PlatformError: a file is missing or changed, people decided about rows of the table or rolled back days computed
            from it, or a stage is open; nothing was changed.
        OvertakenError: others kept publishing; nothing was changed.
        LockLostError: another process ingested into the table in between; nothing was changed.
    """
    contract = _raw(platform, table)
    with ingest_lock(platform.lake, contract.name):
        platform.settle()
        read = LakeSnapshot.now(platform).reads([contract.name, late_table(contract.name)])
        files = _require_files(platform, contract, progress)
        with meanwhile(progress, "publishing"):
            done = in_turns(lambda: _begin_anew(platform, contract, files, author, read))
    from platform_assets.engine.ingest.ingest import ingest  # and Spark, without which a dry run answers at once

    return replace(done, taken=ingest(platform, spark, contract, author, progress=progress))


def _raw(platform: Platform, table: str) -> Contract:
    contract = platform.catalogue[table]
    if contract.source is None:
        raise PlatformError(
            f"{contract.name} is computed and has no deliveries of its own.",
            f"Name a raw table; `platform-assets refresh {contract.name} --force` computes this one again.",
        )
    return contract


def _require_files(platform: Platform, contract: Contract, progress: OnProgress) -> int:
    """Return how many files there are to ingest; each ingested one must be there unchanged."""
    assert contract.source is not None
    arrivals = platform.ledger.arrivals(contract.name)
    if not arrivals:
        raise PlatformError(
            f"Nothing was ingested for {contract.name} yet, so there is nothing to ingest again.",
            "`platform-assets refresh` ingests what is in the landing area.",
        )
    _refuse_decided(platform, contract, arrivals)
    newest = {arrival.path: arrival for arrival in arrivals if arrival.kind == "delivery"}
    taken = {path: arrival for path, arrival in newest.items() if arrival.reason is None}
    there, wrong = landed_files(platform, contract, taken, with_others=True)
    differing: dict[str, str] = {}
    for number, (path, arrival) in enumerate(sorted(taken.items())):
        progress(Progress("comparing", contract.name, number, len(taken), "file"))
        if path in wrong:
            differing[path] = wrong[path]
        elif problem := _differs(there[path], arrival):
            differing[path] = problem
    progress(Progress("comparing", contract.name, len(taken), len(taken), "file", finished=True))
    if differing:
        named = "; ".join(f"{path} {what}" for path, what in list(differing.items())[:_NAMED])
        more = f"; and {len(differing) - _NAMED:,} more files" if len(differing) > _NAMED else ""
        raise PlatformError(
            f"{contract.name} cannot be reloaded, because ingested files are missing or changed: "
            f"{named}{more}. Nothing was changed.",
            "Put them back into the landing area, with their content and names, and try again.",
        )
    return len(there)


def _differs(file: LandedFile, arrival: ArrivalRecord) -> str:
    found, problems = hashed([file])
    if problems:
        return problems[0].message
    if found[0].sha256 != arrival.sha256:
        return f"has sha256 {found[0].sha256[:12]}, and had {arrival.sha256[:12]} when it was taken"
    return ""


def _refuse_decided(platform: Platform, contract: Contract, arrivals: Sequence[ArrivalRecord]) -> None:
    """Refuse to ingest again what people decided about: their decisions concern the rows as ingested."""
    carried_out = [f"the {made.kind} of {made.origin}" for made in arrivals if made.kind in ("approval", "withdrawal")]
    written = [
        f"the {decision.kind} of {decision.arrival} for {decision.day} by {decision.who}"
        for decision in platform.ledger.decisions(LateDecision)
        if decision.table == contract.name
    ]
    if decided := [*carried_out, *written]:
        raise PlatformError(
            f"{contract.name} cannot be reloaded, because people decided about its rows: {decided[0]}. A decision is "
            "about rows as they were taken.",
            "Declare the table under a new name and deliver its files there.",
        )


def _planned(platform: Platform, contract: Contract, files: int) -> tuple[Reload, tuple[TableChange, ...]]:
    """Return what the reload empties, at the current release."""
    if stages := stage_names(platform.lake):
        raise PlatformError(
            f"The stage {stages[0]} is open, and what lies in it was computed from {contract.name} as it is.",
            ends_of(platform.lake, stages[0]),
        )
    snapshot = LakeSnapshot.now(platform)
    derived = platform.catalogue.with_dependants([contract.name])[1:]
    if put_back := [hold for hold in snapshot.holds if hold.table in derived and hold.is_of_good_content]:
        hold = put_back[0]
        raise PlatformError(
            f"{hold.table} {hold.day} is as a person put it back ({hold.reason}), and a reload would undo that.",
            f"End that first: {hold.overruled_by}.",
        )
    aside = [quarantine_table(table) for table in derived if table.startswith("silver.")]
    changes: list[TableChange] = []
    for table in (contract.name, refused_table(contract.name), late_table(contract.name), *derived, *aside):
        if (version := snapshot.version(table)) is not None:
            there = table_snapshot(platform.lake.table_path(table), version)
            live = files_of_days(there, table)
            days = {
                day: DayContent(
                    files=(), base=tuple(file.path for file in live.get(day, ())), digest="", rows=0, bytes=0
                )
                for day in sorted(live.keys() | snapshot.days(table).keys())
            }
            changes.append(TableChange(table=table, schema_string=there.schema_string, days=days))
    days_by_table = {change.table: tuple(change.days) for change in changes if change.days}
    rows = {table: sum(day.rows for day in snapshot.days(table).values()) for table in days_by_table}
    return Reload(contract.name, files, snapshot.number, days_by_table, rows), tuple(changes)


def _begin_anew(platform: Platform, contract: Contract, files: int, author: Author, read: Mapping[str, int]) -> Reload:
    planned, changes = _planned(platform, contract, files)
    refuse_stopped(platform, RELOAD, [change.table for change in changes])
    # Before, not after: a crash in between leaves days that are tried once more, and held again.
    derived = platform.catalogue.with_dependants([contract.name])[1:]
    platform.ledger.drop([hold for hold in platform.ledger.holds() if hold.table in derived])
    publication = new_publication()
    arrival = Arrival(
        table=contract.name,
        path=f"reloaded/{contract.name.partition('.')[2]}/{publication}",
        arrival_date=platform.settings.current_day(),
        size=0,
        sha256="",
        modified_ns=0,
        notes=(f"what was taken before counts no more; {files:,} files lay there to be taken anew",),
        kind=RELOAD,
    )
    number = publish_changes(
        platform, publication, RELOAD, changes, author, [arrival], on_release=planned.before, on_versions=read
    )
    return replace(planned, release=number)
