"""Days written anew without the rows of a key: the files that hold them are replaced, all others stay."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from platform_assets.engine.day_contents import AHEAD, staged_at
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import computed_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, damaged
from platform_assets.operations.erasure.places import Hits, Place
from platform_assets.planning.steps import bytes_among, parts_of
from platform_assets.quality.findings import FELL_FROM, LAG
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, DayContent, Erasure, TableChange
from platform_assets.secret import name_of
from platform_assets.spark.compare.profiles import RawProfile, by_columns, digests_in_files, profile, profile_raw
from platform_assets.spark.raw.dead_letters import is_erased
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_files
from platform_assets.spark.tables.staging import stage


def without_rows(
    spark: SparkSession, snapshot: LakeSnapshot, place: Place, hits: Hits, publication: str, secret: bytes
) -> tuple[TableChange, Erasure]:
    """Stage the days of a table that hold rows of a key without these.

    What is left is counted again from the files, and with what was taken out it has to be what was published before.

    Raises:
        DamagedTableError: a file of these days is not as it was written; nothing was changed.
        PlatformError: the files hold other rows than were published; nothing was changed.
    """
    lake, table = snapshot.platform.lake, place.table
    path, folder = lake.table_path(table), lake.stage_path(table, publication)
    schema_string = snapshot.schema_string(table)
    schema = StructType.fromJson(json.loads(schema_string))
    records = snapshot.platform.ledger.current_days(table, at=snapshot.number, among=list(hits))
    live = snapshot.files(table)
    for file in (file for day in sorted(hits) for file in live[day]):
        if problem := damage(path / file.path, file.size):
            raise damaged(path / file.path, problem)
    with full_disk_explained(table):
        old = {day: [file for file in live[day] if file.path in hits[day]] for day in hits}
        out = _stage_the_rest(spark, place, old, schema, folder, secret, snapshot.platform.settings.part_bytes)
    staged = staged_at(lake, table, publication)
    files = {
        day: (*(file for file in live[day] if file.path not in hits[day]), *staged.get(day, ())) for day in sorted(hits)
    }
    left = digests_in_files(spark, path, [file.path for of_day in files.values() for file in of_day], schema)
    for day in hits:
        was = Digest.parse(records[day].digest) if day in records else None
        taken = out.digests.get(day, Digest())
        if left.get(day, Digest()) + taken != was or taken.rows != sum(hits[day].values()):
            raise PlatformError(
                f"The files of {table} {day} hold other rows than were published; nothing was erased.",
                "`platform-assets audit verify --digests` names what repairs the day; erase once it is whole.",
            )
    computed = computed_by(lake, table, {day: records[day].publication for day in hits})
    contents = {
        day: DayContent(
            files=files[day],
            base=tuple(file.path for file in live[day]),
            digest=str(left.get(day, Digest())),
            fingerprint=records[day].fingerprint,
            rows=left.get(day, Digest()).rows,
            bytes=sum(file.size for file in files[day]),
            figures=_figures(records[day], out, day),
            warnings=records[day].warnings,
            restores=computed[day],
        )
        for day in sorted(hits)
    }
    erasure = Erasure(
        table=table,
        key=place.hashes(secret),
        secret=name_of(secret),
        rows={day: sum(hits[day].values()) for day in sorted(hits)},
        arrivals={arrival: rows for arrival, rows in sorted(out.taken.items()) if rows},
    )
    return TableChange(table=table, schema_string=schema_string, days=contents), erasure


def _stage_the_rest(
    spark: SparkSession,
    place: Place,
    files: Mapping[date, Collection[DataFile]],
    schema: StructType,
    folder: Location,
    secret: bytes,
    part_bytes: int,
) -> RawProfile:
    """Stage what stays of some files; the profile of what does not."""
    keys = place.keys(secret)
    out = RawProfile()
    names = [file.path for of_day in files.values() for file in of_day]
    for columns, alike in by_columns(folder.parent, names, schema):
        rows = read_files(spark, folder.parent, alike, columns)
        told = is_erased(rows, keys)
        stage(rows.where(~told), folder, parts=parts_of(bytes_among(files, alike), part_bytes))
        gone = rows.where(told)
        if "_arrival" in columns.fieldNames():
            out.add(profile_raw(gone))
        else:
            digests = {day: found.digest for day, found in profile(gone, (), ()).items()}
            out.add(RawProfile(digests))
    return out


def _figures(record: DayRecord, out: RawProfile, day: date) -> dict[str, int]:
    """Return the counts of a day without what was taken out of it; of a computed day as they were, until it is anew.

    But from how many rows it fell: what of these may never come back is not known.
    """
    less = {"tombstones": out.tombstones, "withdrawals": out.withdrawals, AHEAD: out.ahead, LAG: out.lags}
    return {
        name: number - less[name].get(day, 0) if name in less else number
        for name, number in record.figures.items()
        if name != FELL_FROM
    }
