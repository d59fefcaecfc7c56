"""Which files hold rows of a key: those that readers see, and all others that still lie in the lake. No Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damaged, opened
from platform_assets.operations.erasure.places import Place
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.erased_keys import AS_DELIVERED, ErasedKeys
from platform_assets.records.manifest import is_publication

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
