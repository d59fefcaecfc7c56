"""Where records of a raw day have gone, and which have come back, told by its tombstones and withdrawals without Spark.

Files with tombstones or withdrawals are never compacted, so that they stay; what was compacted and deleted since had
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta.key_bounds import may_hold
from platform_assets.lakehouse.releases import made_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.planning.configuration import Parts, settling
from platform_assets.records.history import DayRecord
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


def has_ties(platform: Platform, contract: Contract) -> bool:
    """Whether records can move between days of a table."""
    return contract.layer == "silver" and moves_within_days(platform, contract) > 0


def moves_within_days(platform: Platform, contract: Contract) -> int:
    """How far records of a table can move."""
    return platform.catalogue[contract.inputs[0].table].moves_within_days


class SettledBy:
    """By which rules, order and key it was settled which version of a record counts, when days were computed."""

    def __init__(self, platform: Platform, contract: Contract) -> None:
        self._lake = platform.lake
        self._now = platform.configurations[contract.name]
        self._known = {self._now.hash: settling(self._now.parts)}

    def same_for(self, record: DayRecord, other: DayRecord | None = None) -> bool:
        """Whether it was for one day as it was for another, or is today; so it is where nobody recorded it."""
        now = self._now.hash if other is None else other.configuration
        if not record.configuration or not now or record.configuration == now:
            return True
        return self._of(record) == (self._known[now] if other is None else self._of(other))

    def _of(self, record: DayRecord) -> Parts:
        if record.configuration not in self._known:
            parts = made_by(self._lake, record.publication, record.table, record.day).configuration
            self._known[record.configuration] = settling(parts)
        return self._known[record.configuration]


def version_read(record: DayRecord, raw: str) -> int | None:
    """Of raw, by what a day was made from; None where it read nothing of it."""
    version = record.reads.get(raw, -1)
    return version if version >= 0 else None
