"""A lake's releases and its ledger as years of daily runs leave them, without rows and without Spark."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from benchmarks.many_tables import SALES, TABLES
from platform_assets.contracts import DAY
from platform_assets.engine.platform import Platform
from platform_assets.engine.state.reference_data import content_of, history_key, history_order
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release, manifest_file, write_release
from platform_assets.operations.opening import open_platform
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.windows import Calendar, day_range
from platform_assets.records.differences import Digest
from platform_assets.records.history import ArrivalRecord, DayRecord, PublicationRecord
from platform_assets.records.manifest import Manifest
from platform_assets.settings import load_settings
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.places import on_disk

FIRST = date(2017, 1, 1)
SOURCE = SALES[0]
"""Whose raw table gets a dirty day."""

REFERENCE = "silver.products"  # read as of the day
ROWS = 10_000  # of every day

Made = Mapping[str, Mapping[date, tuple[str, str]]]
"""Digest and fingerprint of days, by table."""


class Installation:
    """A lake and a ledger that grow day by day and are always up to date."""

    def __init__(self, state: Path, years: int) -> None:
        self.state = state
        self.until = FIRST - timedelta(days=1)
        self.releases = 0
        self.recorded = 0
        on_disk(Lake.at(state / "lake").releases_path).mkdir(parents=True)
        self.calendar = Calendar(FIRST, last_day(years))
        days = self.calendar.days()
        self.digests = {contract.name: {day: _digest(contract.name, day) for day in days} for contract in TABLES}
        # All windows look back, so what a day is made from does not depend on how far history has come.
        self.made_from = {
            contract.name: fingerprints(contract, days, self.digests, self.calendar, {})
            for contract in TABLES
            if contract.inputs
        }

    def grow(self, last: date) -> None:
        """Publish every day up to one, all tables at once: as it came, and corrected."""
        with self.open(last) as platform:
            records: list[PublicationRecord] = []
            for day in day_range(self.until + timedelta(days=1), last):
                came = {table: {day: (_digest(table, day, "as it came"), "")} for table in self.digests}
                records += [self._publish(platform, made) for made in (came, self._right(*self.digests, day=day))]
            platform.ledger.record(*records)
            # There are no rows to look at: as after every refresh, somebody has, and nothing was ever valid.
            days = {day: self.digests[REFERENCE][day] for day in Calendar(FIRST, last).days()}
            content = content_of(
                days, history_key(platform.catalogue, REFERENCE), history_order(platform.catalogue, REFERENCE)
            )
            platform.ledger.looks.keep_view(REFERENCE, content, {})
        self.until = last

    def dirty(self, day: date) -> None:
        """Give one day of a raw table other content."""
        with self.open(self.until) as platform:
            made = {f"raw.{SOURCE}": {day: (_digest(SOURCE, day, "other"), "")}}
            platform.ledger.record(self._publish(platform, made))

    def clean(self, day: date) -> None:
        """Give it back what it had."""
        with self.open(self.until) as platform:
            platform.ledger.record(self._publish(platform, self._right(f"raw.{SOURCE}", day=day)))

    @contextmanager
    def open(self, last: date) -> Iterator[Platform]:
        """The platform as every command opens it, with a calendar that ends on a day."""
        settings = load_settings(
            state=self.state,
            lake=self.state / "lake",
            landing=self.state / "landing",
            ledger_url=f"sqlite:///{self.ledger_file}",
            calendar_first=FIRST,
            calendar_last=last,
            today=last,
            domains="benchmarks.many_tables",
        )
        self._log_columns()
        with open_platform(settings) as platform:
            yield platform

    def _log_columns(self) -> None:
        """The newest commit of every table, which says its columns, and no other: nobody asks for files."""
        for contract in TABLES:
            log = Lake.at(self.state / "lake").table_path(contract.name) / "_delta_log"
            shutil.rmtree(on_disk(log), ignore_errors=True)
            on_disk(log).mkdir(parents=True)
            schema = (raw_schema if contract.source else spark_schema)(contract).json()
            metadata = {"id": contract.name, "schemaString": schema, "partitionColumns": [DAY], "configuration": {}}
            newest = on_disk(log / f"{max(self.releases - 1, 0):020d}.json")
            newest.write_text(json.dumps({"metaData": metadata}) + "\n")

    @property
    def ledger_file(self) -> Path:
        """The ledger's database."""
        return self.state / "ledger.db"

    def _right(self, *tables: str, day: date) -> Made:
        """What tables have on a day when they are up to date."""
        return {
            table: {day: (self.digests[table][day], self.made_from[table][day] if table in self.made_from else "")}
            for table in tables
        }

    def _publish(self, platform: Platform, made: Made) -> PublicationRecord:
        """A release of the lake, and what the ledger is to record of it."""
        name = f"p{self.releases:06d}"
        manifest = Manifest(
            publication=name,
            created_at=datetime.now(UTC),
            kind="recompute",
            run="benchmark",
            who="benchmark",
            why="a benchmark",
            git_commit=None,
            tables=(),
        )
        manifest_file(platform.lake, name).replace(manifest.model_dump_json().encode())
        release = write_release(
            platform.lake, current_release(platform.lake), dict.fromkeys(self.digests, self.releases), manifest
        )
        self.releases += 1
        days: list[DayRecord] = []
        for table, found in made.items():
            reads = dict.fromkeys((read.table for read in platform.catalogue[table].inputs), release.number - 1)
            figures, code = {"rows": ROWS, "quarantined": 0}, platform.code_versions.get(table, "")
            days += [
                DayRecord(table, day, name, digest, made_from, ROWS, ROWS * 40, 1, figures, reads, code, 0.1)
                for day, (digest, made_from) in found.items()
            ]
        self.recorded += len(days)
        now = datetime.now(UTC)
        arrivals = tuple(
            _arrival(name, table, max(found)) for table, found in made.items() if platform.catalogue[table].source
        )
        author = ("recompute", "run", "benchmark", "a benchmark", None)
        return PublicationRecord(name, release.number, now, *author, tuple(days), arrivals)


def _arrival(publication: str, table: str, day: date) -> ArrivalRecord:
    """The file that brings a raw day."""
    file: dict[str, object] = {"table": table, "path": f"{table}/{day}/rows.csv", "arrival_date": day, "sha256": ""}
    rows = {"size": ROWS * 40, "modified_ns": 0, "landed": ROWS, "taken": ROWS, "refused": 0}
    return ArrivalRecord.model_validate(file | rows | {"reason": None, "notes": (), "publication": publication})


def last_day(years: int) -> date:
    """Of so many years from the first day."""
    return FIRST.replace(year=FIRST.year + years) - timedelta(days=1)


def _digest(table: str, day: date, how: str = "corrected") -> str:
    value = int.from_bytes(hashlib.sha256(f"{table} {day} {how}".encode()).digest()[:8])
    return str(Digest(ROWS, (value, value // 3, value // 5, value // 7)))
