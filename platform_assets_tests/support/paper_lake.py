"""A lake of releases alone and a ledger that knows of each what days it made: history without rows, files or Spark.

Its tables have every kind of window, and two of them together; nothing computes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import delete, select

from platform_assets.contracts import (
    DAY,
    AllHistory,
    Catalogue,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    as_of,
    month_to_date,
    offsets,
    same_day,
    span,
)
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.reference_data import content_of, history_key, history_order
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release, manifest_file, release, write_release
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.queries import insert_all
from platform_assets.ledger.schema import looks
from platform_assets.records.history import ArrivalRecord, DayRecord, PublicationRecord
from platform_assets.records.manifest import Manifest
from platform_assets.settings import load_settings
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.places import on_disk

_KEY = Column("id", "long", "What the row is about.", nullable=False)
_HAPPENED = Column("happened_at", "timestamp", "When it happened, UTC.", nullable=False)
_UPDATED = Column("updated_at", "timestamp", "When the source last wrote it, UTC.", nullable=False)
RAW = ("raw.sales", "raw.products")
"""Each is delivered so many days after a day as its place says."""


def _raw(name: str, after_days: int) -> Contract:
    return Contract(
        name=name,
        description="As delivered.",
        owner="test@example.com",
        columns=(_KEY, _HAPPENED, _UPDATED),
        key=("id",),
        source=LandingFiles(name.partition(".")[2]),
        event_time="happened_at",
        updated_at="updated_at",
        delivered_after_days=after_days,
    )


def _computed(name: str, *inputs: Input) -> Contract:
    return Contract(
        name=name, description="Computed.", owner="test@example.com", columns=(_KEY,), key=("id",), inputs=inputs
    )


DOMAIN = Domain(
    name="every_window",
    tables=(
        *(_raw(name, after_days) for after_days, name in enumerate(RAW)),
        _computed("silver.products", Input("raw.products", same_day())),
        _computed("silver.sales", Input("raw.sales", same_day())),
        _computed("gold.daily", Input("silver.sales", same_day()), Input("silver.products", as_of())),
        _computed("gold.joined", Input("silver.sales", span(2)), Input("silver.products", as_of())),
        _computed("gold.around", Input("silver.sales", span(2, 1))),
        _computed("gold.beside", Input("silver.sales", offsets(-3, 0))),
        _computed("gold.month", Input("gold.daily", month_to_date())),
        _computed("gold.so_far", Input("silver.sales", month_to_date()), Input("silver.products", as_of())),
        _computed("gold.ever", Input("silver.sales", AllHistory())),
    ),
    transforms="platform_assets.domains.retail.transforms",
    code_version="1",
)


FIRST = date(2017, 1, 27)
REFERENCE = "silver.products"
TAKEN = "delivery"


@dataclass(frozen=True)
class Made:
    """What a publication makes of a day."""

    digest: str
    fingerprint: str = ""
    rows: int = 1
    code: str | None = None


@dataclass
class PaperLake:
    """Releases, what was indexed of each, and the day and the code of today."""

    state: Path
    url: str
    last: date
    code: str = "1"
    behind: timedelta = timedelta(0)
    delivers: Literal["daily", "on change"] = "daily"
    closed: frozenset[date] = frozenset()
    without: str = ""
    records: list[PublicationRecord] = field(default_factory=list)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        on_disk(self.lake.releases_path).mkdir(parents=True)
        self.ledger = Ledger.open(self.url)

    @property
    def lake(self) -> Lake:
        """Where the releases are."""
        return Lake.at(self.state / "lake")

    @property
    def platform(self) -> Platform:
        """As a command would open it now."""
        settings = load_settings(
            state=self.state,
            lake=self.state / "lake",
            landing=self.state / "landing",
            ledger_url=self.url,
            calendar_first=FIRST,
            calendar_last=self.last,
            today=self.last - self.behind,
        )
        tables = tuple(
            replace(c, delivers=self.delivers, closed_days=self.closed) if c.source else c
            for c in DOMAIN.tables
            if c.name != self.without
        )
        catalogue = Catalogue.of([replace(DOMAIN, tables=tables, code_version=self.code)])
        return Platform(settings, catalogue, self.lake, self.ledger)

    def publish(
        self, made: Mapping[str, Mapping[date, Made]], arrived: tuple[str, date, str] | None = None
    ) -> PublicationRecord:
        """A release that makes something of some days.

        Args:
            made: what, by table.
            arrived: a file with it: its table, its arrival date and what kind of arrival it is.
        """
        platform, number = self.platform, len(self.records)
        name = f"p{number:06d}"
        said = {"kind": "recompute", "run": "r", "who": "a test", "why": "a test", "git_commit": None}
        manifest = Manifest.model_validate({"publication": name, "created_at": datetime.now(UTC), "tables": (), **said})
        manifest_file(self.lake, name).replace(manifest.model_dump_json().encode())
        for contract in platform.catalogue:
            log = on_disk(self.lake.table_path(contract.name) / "_delta_log")
            log.mkdir(parents=True, exist_ok=True)
            schema = (raw_schema if contract.source else spark_schema)(contract).json()
            said_of = {"id": contract.name, "schemaString": schema, "partitionColumns": [DAY], "configuration": {}}
            (log / f"{number:020d}.json").write_text(json.dumps({"metaData": said_of}) + "\n")
        versions = dict.fromkeys(platform.catalogue.names, number)
        write_release(self.lake, current_release(self.lake), versions, manifest)
        days = tuple(
            DayRecord(
                table=table,
                day=day,
                publication=name,
                digest=of_day.digest,
                fingerprint=of_day.fingerprint,
                rows=of_day.rows,
                bytes=of_day.rows * 40,
                files=1,
                figures={},
                reads=dict.fromkeys((read.table for read in platform.catalogue[table].inputs), number - 1),
                code_version=self._code(platform, table, of_day),
                seconds=0.5,
                configuration=platform.configurations[table].hash if platform.catalogue[table].inputs else "",
            )
            for table, of_table in made.items()
            for day, of_day in of_table.items()
        )
        arrivals = (_arrival(name, *arrived),) if arrived else ()
        record = PublicationRecord(name, number, datetime.now(UTC), "recompute", "r", "w", "w", None, days, arrivals)
        self.ledger.record(record)
        self.records.append(record)
        return record

    def keep_views(self) -> None:
        """Have looked at reference data of every release, which has no rows: digests say what is valid."""
        platform = self.platform
        how = (history_key(platform.catalogue, REFERENCE), history_order(platform.catalogue, REFERENCE))
        for number in range(len(self.records)):
            marks = LakeSnapshot(platform, release(self.lake, number)).marks([REFERENCE])[REFERENCE]
            digests = {day: mark.digest for day, mark in marks.items() if day in platform.calendar}
            view, valid = {}, ""
            for day, digest in digests.items():
                if digest[0] != valid:  # of other content the same may be valid
                    view[day] = valid = digest[0]
            self.ledger.looks.keep_view(REFERENCE, content_of(digests, *how), view)

    def looks_at(self, release: int) -> list[dict[str, Any]]:
        """What is kept of looks, up to a release."""
        return self.ledger._database.rows(select(looks).where(looks.c.release <= release))

    def put_looks(self, kept: list[dict[str, Any]]) -> None:
        """Only these looks, as in a ledger from a backup."""
        with self.ledger._database.writing() as connection:
            connection.execute(delete(looks))
            insert_all(connection, looks, kept)

    @staticmethod
    def _code(platform: Platform, table: str, made: Made) -> str:
        return platform.code_versions.get(table, "") if made.code is None else made.code


def _arrival(publication: str, table: str, day: date, kind: str) -> ArrivalRecord:
    return ArrivalRecord.model_validate(
        {
            "table": table,
            "path": f"{table}/{day}/{publication}.csv",
            "arrival_date": day,
            "size": 1,
            "sha256": "",
            "modified_ns": 0,
            "landed": 1,
            "taken": 1,
            "refused": 0,
            "reason": None,
            "notes": (),
            "publication": publication,
            "kind": kind,
        }
    )
