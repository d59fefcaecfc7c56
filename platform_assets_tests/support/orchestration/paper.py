"""The engine on paper: takes files and computes days in the ledger and the lake's log alone, without rows or Spark.

For tests of what starts a run, which do not ask what the run computes. What is published has a digest that follows from
the files, and the fingerprints that the real engine would give it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from hashlib import sha256

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.ingest.listing import list_arrivals, quiet_days
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, still_to_do
from platform_assets.lakehouse.releases import current_release
from platform_assets.planning.selection import AUTOMATIC
from platform_assets.records.digest import Digest
from platform_assets.records.manifest import Arrival, DayContent, Kind, TableChange, new_publication
from platform_assets.sources.landing import LandedFile, hashed
from platform_assets.spark.tables.schemas import raw_schema, spark_schema


def refresh_on_paper(
    platform: Platform, spark: object, author: Author, *, until: date | None = None, **others: object
) -> RefreshResult:
    """As `engine.refresh.refresh`; reports nothing."""
    platform.sync()
    ingest_on_paper(platform, author, until)
    for step in plan_steps(platform).steps:
        marks = waiting(platform, 1).stale.get(step.table, {})
        left = still_to_do(LakeSnapshot.now(platform), step, AUTOMATIC).days
        days = {day: _content(marks[day], marks[day]) for day in left}
        _publish(platform, "recompute", step.table, days, author)
    return RefreshResult()


def ingest_on_paper(platform: Platform, author: Author, until: date | None = None) -> None:
    """Take files and compute nothing of what they touch, as a run that dies after its first tables."""
    for contract in platform.catalogue:
        if contract.source is not None:
            listing = list_arrivals(platform, contract, until)
            before = platform.ledger.current_days(contract.name)
            files: defaultdict[date, str] = defaultdict(str)
            ahead: defaultdict[date, int] = defaultdict(int)
            taken, _ = hashed(listing.pending)
            for file in taken:
                for day in _days(file, contract):
                    files[day] += file.sha256
                    ahead[day] += file.arrival_date < day
            days = {
                day: _content((before[day].digest if day in before else "") + found, rows=1, ahead=ahead[day])
                for day, found in files.items()
            }
            _publish(platform, "ingest", contract.name, days, author, taken)
            quiet = quiet_days(LakeSnapshot.now(platform), contract, listing.delivered, until)
            _publish(platform, "ingest", contract.name, {day: _content("") for day in quiet}, author)


def _days(file: LandedFile, contract: Contract) -> set[date]:
    lines = file.file.read_text().splitlines()
    return {date.fromisoformat(json.loads(line)[contract.event_time][:10]) for line in lines}


def _content(made_of: str, fingerprint: str = "", rows: int = 0, ahead: int = 0) -> DayContent:
    number = int.from_bytes(sha256(made_of.encode()).digest()[:4], "big")
    digest = str(Digest(rows, (number, 0, 0, 0)))
    figures = {AHEAD: ahead} if ahead else {}
    return DayContent(files=(), base=(), digest=digest, rows=rows, bytes=0, figures=figures, fingerprint=fingerprint)


def _publish(
    platform: Platform,
    kind: Kind,
    table: str,
    days: Mapping[date, DayContent],
    author: Author,
    taken: Iterable[LandedFile] = (),
) -> None:
    if not days:
        return
    contract = platform.catalogue[table]
    schema = raw_schema(contract) if contract.source else spark_schema(contract)
    arrivals = [
        Arrival(
            table=table, path=file.path, arrival_date=file.arrival_date, size=file.size, sha256=file.sha256,
            modified_ns=file.modified_ns, landed=0, taken=0, refused=0, reason=None, notes=(),
        )
        for file in taken
    ]  # fmt: skip
    release = current_release(platform.lake)
    change = TableChange(
        table=table,
        schema_string=schema.json(),
        days=dict(days),
        reads={read.table: release.versions.get(read.table, -1) for read in contract.inputs},
        code_version=platform.code_versions.get(table, ""),
        configuration=platform.configurations[table].parts if contract.inputs else {},
    )
    publish_changes(platform, new_publication(), kind, [change], author, arrivals)
