"""Which files hold rows of a key, and days written anew without them: those files are replaced, all others stay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY
from platform_assets.engine.day_contents import AHEAD, staged_at
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import computed_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, damaged, opened
from platform_assets.operations.erasure.places import ErasureError, Place
from platform_assets.planning.parts import bytes_among, parts_of
from platform_assets.progress import OnProgress, Progress
from platform_assets.quality.findings import FELL_FROM
from platform_assets.quality.metrics import LAG
from platform_assets.records.digest import Digest
from platform_assets.records.erased_keys import AS_DELIVERED, ErasedKeys
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, DayContent, Erasure, TableChange, is_publication
from platform_assets.secret import name_of
from platform_assets.spark.compare.mixed_columns import by_columns, digests_in_files
from platform_assets.spark.compare.profiles import RawProfile, profile, profile_raw
from platform_assets.spark.raw.erased import is_erased
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_files
from platform_assets.spark.tables.staging import stage

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 65_536

Hits = Mapping[date, Mapping[str, int]]
"""How many rows of the key files have, by day and path."""


@dataclass(frozen=True)
class Found:
    """Where rows of a key lie.

    Args:
        live: in files that readers see, by table; tables without any are left out.
        older: in files that only older releases show, or that were left behind by nobody alive: rows by table.
    """

    live: Mapping[str, Hits] = field(default_factory=dict)
    older: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, dict[date, int]]:
        """That readers see, by table and day."""
        return {
            table: {day: sum(files.values()) for day, files in sorted(hits.items())}
            for table, hits in self.live.items()
        }

    def __bool__(self) -> bool:
        return bool(self.live or self.older)


def search(snapshot: LakeSnapshot, places: Collection[Place], secret: bytes, progress: OnProgress) -> Found:
    """Look into every file of some tables, whether a release shows it or not.

    Args:
        places: tables, and the key there.

    Raises:
        DamagedTableError: a file that readers see, or one that cannot be opened, does not tell whose rows it holds.
    """
    lake = snapshot.platform.lake
    live: dict[str, dict[date, dict[str, int]]] = {}
    older: dict[str, int] = {}
    for place in places:
        path, keys = lake.table_path(place.table), place.keys(secret)
        seen = {file.path: day for day, files in snapshot.files(place.table).items() for file in files}
        paths = sorted({*seen, *_data_files(lake, place.table)})
        for number, name in enumerate(paths, start=1):
            progress(Progress("searching", place.table, number, len(paths), "file", finished=number == len(paths)))
            rows = _rows_in(path / name, place, keys, is_shown=name in seen)
            if rows and name in seen:
                live.setdefault(place.table, {}).setdefault(seen[name], {})[name] = rows
            elif rows:
                older[place.table] = older.get(place.table, 0) + rows
    return Found(live, older)


def _data_files(lake: Lake, table: str) -> Iterator[str]:
    for name in lake.table_path(table).files():
        publication = name.partition("/")[0]  # what others have put beside publications may lie in no folder
        if is_publication(publication) and f"/{DAY}=" in name and name.endswith(".parquet"):
            yield name


def _rows_in(file: Location, place: Place, keys: ErasedKeys, *, is_shown: bool) -> int:
    """How many rows of the key lie in a file; none in one that goes meanwhile, or is left half written."""
    import pyarrow as pa

    try:
        with opened(file) as parquet:
            there = set(parquet.schema_arrow.names)
            wanted = [name for name in (*place.types, *AS_DELIVERED) if name in there]
            return sum(_matching(batch, place, keys) for batch in parquet.iter_batches(_ROWS, columns=wanted))
    except FileNotFoundError:
        return 0
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, pa.ArrowInvalid) and not is_shown:
            return 0
        raise damaged(file, f"cannot be read ({str(error).splitlines()[0].rstrip('.')})") from error


def _matching(batch: pa.RecordBatch, place: Place, keys: ErasedKeys) -> int:
    names = batch.schema.names
    matches = _by_values(batch, place) if set(place.values) <= set(names) else [False] * batch.num_rows
    kept = [name for name in AS_DELIVERED if name in names]
    if any(batch.column(names.index(name)).null_count < batch.num_rows for name in kept):
        texts = [_texts(batch, name) for name in (*keys.fields, *kept)]
        matches = [
            known or (any(row[len(keys.fields) :]) and keys.has_row(*row))
            for known, row in zip(matches, zip(*texts, strict=True), strict=True)
        ]
    return sum(matches)


def _texts(batch: pa.RecordBatch, name: str) -> list[str | None]:
    import pyarrow.compute as pc

    if (index := batch.schema.get_field_index(name)) < 0:
        return [None] * batch.num_rows
    texts: list[str | None] = pc.cast(batch.column(index), "string").to_pylist()
    return texts


def _by_values(batch: pa.RecordBatch, place: Place) -> list[bool]:
    import pyarrow.compute as pc

    matches = None
    for name, value in place.values.items():
        texts = pc.cast(batch.column(batch.schema.get_field_index(name)), "string")
        equal = pc.fill_null(pc.equal(texts, value), False)
        matches = equal if matches is None else pc.and_(matches, equal)
    found: list[bool] = matches.to_pylist() if matches is not None else []
    return found


def without_rows(
    spark: SparkSession, snapshot: LakeSnapshot, place: Place, hits: Hits, publication: str, secret: bytes
) -> tuple[TableChange, Erasure]:
    """Stage the days of a table that hold rows of a key without these.

    What is left is counted again from the files, and with what was taken out it has to be what was published before.

    Args:
        place: the table, and the key there.
        hits: its files that hold such rows.
        publication: that stages them.

    Raises:
        DamagedTableError: a file of these days is not as it was written; nothing was changed.
        ErasureError: the files hold other rows than were published; nothing was changed.
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
            raise ErasureError(
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
            out = _added(out, profile_raw(gone))
        else:
            digests = {day: found.digest for day, found in profile(gone, (), ()).items()}
            out = _added(out, RawProfile(digests=digests))
    return out


def _added(one: RawProfile, other: RawProfile) -> RawProfile:
    days = one.digests.keys() | other.digests.keys()
    return RawProfile(
        {day: one.digests.get(day, Digest()) + other.digests.get(day, Digest()) for day in days},
        _sum(one.tombstones, other.tombstones),
        _sum(one.withdrawals, other.withdrawals),
        _sum(one.ahead, other.ahead),
        _sum(one.lags, other.lags),
        dict(Counter(one.taken) + Counter(other.taken)),
    )


def _sum(one: Mapping[date, int], other: Mapping[date, int]) -> dict[date, int]:
    return {day: one.get(day, 0) + other.get(day, 0) for day in one.keys() | other.keys()}


def _figures(record: DayRecord, out: RawProfile, day: date) -> dict[str, int]:
    """What was counted of a day, without what was taken out of it; of a computed day as it was, until it is anew.

    But from how many rows it fell: what of these may never come back is not known.
    """
    less = {"tombstones": out.tombstones, "withdrawals": out.withdrawals, AHEAD: out.ahead, LAG: out.lags}
    return {
        name: number - less[name].get(day, 0) if name in less else number
        for name, number in record.figures.items()
        if name != FELL_FROM
    }
