"""Three days of products, published by hand: what commands show and undo, without Spark."""

from __future__ import annotations

from datetime import date

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.releases import current_release
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.manifest import Arrival, DayContent, TableChange, new_publication
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.cli.commands import FIRST, LAST

RAW, SILVER = "raw.products", "silver.products"
DAY = date(2017, 1, 2)
DAYS = (FIRST, DAY, LAST)


def publish_on_paper(
    platform: Platform, table: str, days: dict[date, DayContent], publication: str = "", **values: object
) -> None:
    """A publication of days as they are given."""
    contract = platform.catalogue[table]
    schema = (raw_schema if contract.source else spark_schema)(contract).json()
    reads = {read.table: current_release(platform.lake).versions.get(read.table, -1) for read in contract.inputs}
    change = TableChange.model_validate(
        {"table": table, "schema_string": schema, "days": days, "reads": reads, "seconds": 1.5, **values}
    )
    publish_changes(platform, publication or new_publication(), "recompute", [change], Author("r", "a test"))


def publish_arrivals(platform: Platform, table: str, *arrivals: Arrival) -> None:
    """A publication of what came, and of no day."""
    publish_changes(platform, new_publication(), "ingest", [], Author("r", "a test"), arrivals=arrivals)


def computed(platform: Platform, table: str) -> dict[date, DayContent]:
    """Days as the engine would record them: made from what is there now."""
    contract = platform.catalogue[table]
    digests = {read.table: LakeSnapshot.now(platform).digests(read.table) for read in contract.inputs}
    marks = fingerprints(contract, DAYS, digests, platform.calendar, {})
    return {day: content.model_copy(update={"fingerprint": marks[day]}) for day, content in loaded_empty(DAYS).items()}
