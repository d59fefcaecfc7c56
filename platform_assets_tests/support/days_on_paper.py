"""Days without rows, published as what is there would be computed: enough to ask what is stale, held or tied."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.layout import Lake
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.manifest import DataFile, DayContent, TableChange, Warned, new_publication
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.places import on_disk


def publish(
    platform: Platform,
    table: str,
    days: Collection[date],
    number: int,
    told: date | None = None,
    *,
    filed: bool = False,
    warnings: tuple[Warned, ...] = (),
) -> str:
    """Publish days whose digest has a number in it, made from what is there.

    Args:
        platform: where.
        table: its name.
        days: of it.
        number: for the digest.
        told: of raw, the day to which a tombstone says that a record has gone.
        filed: each day gets a file that nobody reads; else the table's own log has nothing to say.
        warnings: what gates found of each day.
    """
    contract, snapshot, publication = platform.catalogue[table], LakeSnapshot.now(platform), new_publication()
    digests = {read.table: snapshot.digests(read.table) for read in contract.inputs}
    made_from = fingerprints(contract, days, digests, platform.calendar, {}) if digests else dict.fromkeys(days, "")
    live = files_at(platform.lake, table, snapshot.version(table))
    contents: dict[date, DayContent] = {}
    for day in days:
        base = tuple(file.path for file in live.get(day, ()))
        files = live.get(day, ())
        if told or filed:
            files = (*files, _file(platform.lake, table, publication, day, told))
        contents[day] = DayContent(
            files=files,
            base=base,
            digest=f"0-{number}-0-0-0",
            rows=0,
            bytes=0,
            fingerprint=made_from[day],
            warnings=warnings,
        )
    change = TableChange(
        table=table,
        schema_string=(raw_schema if contract.source else spark_schema)(contract).json(),
        days=contents,
        reads=snapshot.reads(digests),
        code_version=platform.code_versions.get(table, ""),
        configuration=platform.configurations[table].parts if digests else {},
    )
    publish_changes(platform, publication, "recompute", [change], Author("r", "a test"))
    return publication


def _file(lake: Lake, table: str, publication: str, day: date, told: date | None) -> DataFile:
    path = f"{publication}/event_date={day}/told.parquet"
    file = lake.table_path(table) / path
    on_disk(file.parent).mkdir(parents=True)
    pq.write_table(pa.table({"_kind": ["tombstone"], "_arrival": ["a"], "_order_day": [told]}), file)
    return DataFile(path=path, size=on_disk(file).stat().st_size, modified_ms=0, stats="{}")
