"""Sensor readings of ten days, for what Dagster does about them; and the engine on paper, which computes them.

On paper files are taken and days computed in the ledger and the lake's log alone, without rows or Spark: for tests of
what starts a run, which do not ask what the run computes. What is published has a digest that follows from the files,
and the fingerprints that the real engine would give it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from hashlib import sha256

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.pending import list_arrivals, quiet_days, waiting
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, still_to_do
from platform_assets.lakehouse.releases import current_release
from platform_assets.planning.selection import AUTOMATIC
from platform_assets.records.code_version import Attempt
from platform_assets.records.differences import Digest
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival, DayContent, Kind, TableChange, new_publication
from platform_assets.sources.landing import LandedFile, hashed
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.domains.transforms import gold
from platform_assets_tests.support.world import World

SENSORS = "platform_assets_tests.support.domains.sensors"
RAW, SILVER, GOLD = TABLES = ("raw.readings", "silver.readings", "gold.sensor_week")
DAYS = [f"2017-01-{day:02}" for day in range(1, 11)]


def land(world: World, arrival: str, *days: str, name: str = "r.jsonl", celsius: str = "20.00") -> None:
    """One reading a day in one file, two minutes after the hour of its name."""
    hour = 10 + len(name)
    rows = [{"sensor": "a", "measured_at": f"{day}T{hour}:00:00Z", "celsius": celsius} for day in days]
    world.deliver_rows("readings", arrival, name, rows)


def ingest_only(world: World, day: str) -> None:
    """What a run leaves that dies after its first table."""
    land(world, day, day)
    with world.open() as platform:
        ingest_on_paper(platform, Author("dead", "a test"))


def hold_a_correction(world: World, gate: str = "volume", reason: str = "too few rows: 0 rows") -> None:
    """What a refresh at a terminal does to a day that comes out wrong."""
    land(world, DAYS[2], DAYS[1], name="bad.jsonl")
    day = date.fromisoformat(DAYS[1])
    with world.open() as platform:
        ingest_on_paper(platform, Author("refresh-2", "refresh"))
        refused = Attempt(waiting(platform, 1).stale[SILVER][day])
        said = f"{SILVER} on {day}: {reason}"
        platform.ledger.hold([Hold(SILVER, day, refused, gate, said, "refresh-2", datetime.now(UTC))])


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


def land_second_sensor(world: World, day: str, name: str = "bad.jsonl") -> None:
    """A reading of it."""
    row = {"sensor": "b", "measured_at": f"{day}T12:{len(name):02}:00Z", "celsius": "20.00"}
    world.deliver_rows("readings", day, name, [row])


def break_gold(patch: pytest.MonkeyPatch) -> None:
    """Gold comes out without the coldest reading of the second sensor, which its contract promises."""
    sensor_week = gold.sensor_week

    def broken(readings: Windowed) -> DataFrame:
        return sensor_week(readings).withColumn("coldest", F.when(F.col("sensor") != "b", F.col("coldest")))

    patch.setattr(gold, "sensor_week", broken)
