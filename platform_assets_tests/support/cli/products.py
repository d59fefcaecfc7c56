"""Three days of products, published by hand: what commands show and undo, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.opening import open_platform
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import Arrival, DataFile, DayContent, TableChange, Warned, new_publication
from platform_assets.settings import Settings
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.cli.commands import FIRST, LAST
from platform_assets_tests.support.places import on_disk

RAW, SILVER = "raw.products", "silver.products"
DAY = date(2017, 1, 2)
DAYS = (FIRST, DAY, LAST)
A_TEST = Author("r", "a test")


def publish_on_paper(
    platform: Platform,
    table: str,
    days: dict[date, DayContent],
    publication: str = "",
    author: Author = A_TEST,
    arrivals: Sequence[Arrival] = (),
    **values: object,
) -> None:
    """A publication of days as they are given, and of the arrivals that they came with."""
    contract = platform.catalogue[table]
    schema = (raw_schema if contract.source else spark_schema)(contract).json()
    reads = {read.table: current_release(platform.lake).versions.get(read.table, -1) for read in contract.inputs}
    change = TableChange.model_validate(
        {"table": table, "schema_string": schema, "days": days, "reads": reads, "seconds": 1.5, **values}
    )
    publish_changes(platform, publication or new_publication(), "recompute", [change], author, arrivals=arrivals)


def publish_arrivals(platform: Platform, table: str, *arrivals: Arrival) -> None:
    """A publication of what came, and of no day."""
    publish_changes(platform, new_publication(), "ingest", [], A_TEST, arrivals=arrivals)


def computed(platform: Platform, table: str) -> dict[date, DayContent]:
    """Days as the engine would record them: made from what is there now."""
    contract = platform.catalogue[table]
    digests = {read.table: LakeSnapshot.now(platform).digests(read.table) for read in contract.inputs}
    marks = fingerprints(contract, DAYS, digests, platform.calendar, {})
    return {day: content.model_copy(update={"fingerprint": marks[day]}) for day, content in loaded_empty(DAYS).items()}


def deliver(settings: Settings, day: date, rows: int, arrival: str = "", arrivals: Sequence[Arrival] = ()) -> None:
    """So many rows in all for a raw day, of which only the file they came from is written down."""
    publication = new_publication()
    path = f"{publication}/event_date={day}/part-0.parquet"
    with open_platform(settings) as platform:
        file = platform.lake.table_path(RAW) / path
        on_disk(file.parent).mkdir(parents=True)
        pq.write_table(pa.table({"_arrival": [arrival or f"products/{day}/p.csv"] * rows}), file)
        staged = DataFile(path=path, size=on_disk(file).stat().st_size, modified_ms=1, stats="{}")
        before = tuple(old.path for old in live_files(platform.lake.table_path(RAW)).get(day, ()))
        digest = str(Digest(rows, (rows, 1, 2, 3)))
        content = DayContent(files=(staged,), base=before, digest=digest, rows=rows, bytes=staged.size)
        publish_on_paper(platform, RAW, {day: content}, publication, arrivals=arrivals)


def arrive(settings: Settings, name: str, rows: int) -> str:
    """A file of which rows of the day were taken into raw, which has so many in all by then; its path."""
    path = f"products/{DAY}/{name}"
    deliver(settings, DAY, rows, path)
    with open_platform(settings) as platform:
        arrival = Arrival(
            table=RAW, path=path, arrival_date=DAY, size=1, sha256=name, modified_ns=1, landed=rows, taken=rows
        )
        publish_arrivals(platform, RAW, arrival)
    return path


def compute(settings: Settings, *warnings: Warned) -> str:
    """The day of silver, made by today's code from what is there now; its publication."""
    with open_platform(settings) as platform:
        version, parts, name = platform.version(SILVER), platform.configurations[SILVER].parts, new_publication()
        content = computed(platform, SILVER)[DAY].model_copy(update={"warnings": warnings})
        publish_on_paper(platform, SILVER, {DAY: content}, name, code_version=version.code, configuration=parts)
    return name
