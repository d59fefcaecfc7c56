"""Where records of a raw day have gone, and which have come back, told by its tombstones and withdrawals without Spark.

Files with tombstones or withdrawals are never compacted, so that they stay; what was compacted and deleted since had
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import Any

from platform_assets.lakehouse.delta.key_bounds import may_hold
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import DataFile
from platform_assets.records.row_kinds import TOMBSTONE, WITHDRAWAL


def moved(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """The days to or from which records of a day moved between the time it had some files and then others.

    Args:
        table: where raw lies.
        before: files of the day; none where nothing of it is known.
        after: files of the day, later.
    """
    return set(_marked(table, set(after) - set(before), TOMBSTONE, "_order_day")) | sent_home(table, before, after)


def sent_home(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """The days from which records come back because what was delivered there was withdrawn in the meantime."""
    withdrawn = set(_marked(table, set(after) - set(before), WITHDRAWAL, "_arrival"))
    return set(_marked(table, after, TOMBSTONE, "_order_day", of_arrivals=withdrawn)) if withdrawn else set()


def _marked(
    table: Location, files: Iterable[DataFile], kind: str, column: str, of_arrivals: Collection[str] | None = None
) -> Iterator[Any]:
    """The values that rows of a kind have in a column, of some arrivals or of all."""
    import pyarrow.parquet as pq  # which most commands do without

    filters = [("_kind", "=", kind), *([("_arrival", "in", of_arrivals)] if of_arrivals is not None else [])]
    for file in files:
        if may_hold(file, "_kind", kind) and (table / file.path).exists():
            filesystem, path = (table / file.path).arrow()
            rows = pq.read_table(path, columns=[column], filters=filters, partitioning=None, filesystem=filesystem)
            yield from rows.column(0).unique().to_pylist()
