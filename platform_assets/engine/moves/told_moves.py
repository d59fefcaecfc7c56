"""Where records of a raw day have gone, and which have come back, told by its tombstones and withdrawals without Spark.

Files with tombstones or withdrawals are never compacted, so that they stay; what was compacted and deleted since had
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from platform_assets.lakehouse.delta.key_bounds import may_hold
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.records.manifest import DataFile
from platform_assets.records.row_kinds import TOMBSTONE, WITHDRAWAL

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 65_536
_FILES_KEPT = 4_096


def moved(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """The days to or from which records of a day moved between the time it had some files and then others.

    Args:
        table: where raw lies.
        before: files of the day; none where nothing of it is known.
        after: files of the day, later.

    Raises:
        DamagedTableError: a file is not as it was written.
    """
    new = _new(before, after)
    went = {day for file in _holding(table, new, TOMBSTONE) for day in _told(file, TOMBSTONE, "_order_day")}
    return went | _sent_home(table, new, after)


def sent_home(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """The days from which records come back because what was delivered there was withdrawn in the meantime."""
    return _sent_home(table, _new(before, after), after)


def _new(before: Collection[DataFile], after: Collection[DataFile]) -> list[DataFile]:
    known = {file.path for file in before}
    return [file for file in after if file.path not in known]


def _sent_home(table: Location, new: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    withdrawn = {path for file in _holding(table, new, WITHDRAWAL) for path in _told(file, WITHDRAWAL, "_arrival")}
    if not withdrawn:
        return set()
    return {
        row["_order_day"]
        for file in _holding(table, after, TOMBSTONE)
        for rows in _of_kind(file, TOMBSTONE, ("_arrival", "_order_day"))
        for row in rows.to_pylist()
        if row["_arrival"] in withdrawn
    }


def _holding(table: Location, files: Iterable[DataFile], kind: str) -> Iterator[Location]:
    """Those of some files that can hold rows of a kind and are there."""
    return (there for file in files if may_hold(file, "_kind", kind) and (there := table / file.path).exists())


@lru_cache(maxsize=_FILES_KEPT)
def _told(file: Location, kind: str, column: str) -> frozenset[Any]:
    """The values that rows of a kind have in a column of a file; kept, since a file never changes and many ask."""
    return frozenset(
        value for rows in _of_kind(file, kind, (column,)) for value in rows.column(column).unique().to_pylist()
    )


def _of_kind(file: Location, kind: str, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.compute as pc  # which most commands do without

    for rows in row_batches(file, _BATCH_ROWS, ("_kind", *columns)):
        kinds = rows.column("_kind")
        # As the rows have it: Arrow makes a value of one of Python's only once it has imported pandas, half a second.
        wanted = next((value for value in kinds.unique() if value.as_py() == kind), None)
        if wanted is not None:
            yield rows.filter(pc.equal(kinds, wanted))
