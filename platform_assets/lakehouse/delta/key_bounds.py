"""Which files can hold a value, or a key of some others, told from the statistics in the log without reading a row."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.records.manifest import DataFile

if TYPE_CHECKING:
    import pyarrow as pa


_Bounds = tuple[Any, Any]
_NO_FOUR_DIGITS = re.compile(r"[+-]\d+-\d\d-\d\d")
"""A day whose year is written with a sign; such texts are not in the order of the days."""


def may_share_keys(
    files: Mapping[date, Sequence[DataFile]], others: Mapping[date, Sequence[DataFile]], columns: Collection[str]
) -> dict[date, tuple[DataFile, ...]]:
    """Return those of some files that can hold a key of the others; a file without statistics always can.

    Args:
        columns: of the key, of types whose bounds in the log are exact or rounded outwards: whole numbers, text, dates.
    """
    left = {day: tuple(of_day) for day, of_day in files.items()}
    for column in columns:
        bounds = [_bounds(file, column) for of_day in others.values() for file in of_day]
        if None in bounds:
            continue
        spans = _merged([span for span in bounds if span])
        starts = [start for start, _ in spans]

        def meets(file: DataFile, spans: list[_Bounds] = spans, starts: list[Any] = starts, name: str = column) -> bool:
            if (span := _bounds(file, name)) is None:
                return True
            at = bisect_right(starts, span[1]) - 1
            return at >= 0 and bool(spans[at][1] >= span[0])

        left = {day: tuple(filter(meets, of_day)) for day, of_day in left.items()}
    return {day: of_day for day, of_day in left.items() if of_day}


def may_hold(file: DataFile, column: str, value: str) -> bool:
    """Return whether a file can have a row with a value in a text column; one without statistics always can."""
    bounds = _bounds(file, column)
    return bounds is None or bool(bounds[0] <= value <= bounds[1])


def may_lack(file: DataFile, column: str) -> bool:
    """Tell whether a file can have a row without a value in a column; one without statistics always can."""
    return _lacks(file.stats, column)


@lru_cache(maxsize=1 << 14)
def _lacks(stats_json: str, column: str) -> bool:
    return bool(from_json(stats_json).get("nullCount", {}).get(column, 1))


def _bounds(file: DataFile, column: str) -> _Bounds | None:
    """None also where what the log says may have lost digits, or is not in the order of the values."""
    return _bounds_in(file.stats, column)


@lru_cache(maxsize=1 << 14)
def _bounds_in(stats_json: str, column: str) -> _Bounds | None:
    stats = from_json(stats_json)
    both = (stats.get("minValues", {}).get(column), stats.get("maxValues", {}).get(column))
    return both if {type(bound) for bound in both} in ({int}, {str}) and not any(map(_is_odd, both)) else None


def _is_odd(bound: int | str) -> bool:
    return isinstance(bound, str) and _NO_FOUR_DIGITS.fullmatch(bound) is not None


def _merged(bounds: Collection[_Bounds]) -> list[_Bounds]:
    merged: list[_Bounds] = []
    for low, high in sorted(bounds):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


_BATCH_ROWS = 16_384
_MOST_BYTES = 64 * 1024 * 1024
"""Of the keys of a day that are held at once; a day with more is left to Spark."""


def days_of_unique_keys(folder: Location, key: Sequence[str], most_bytes: int = _MOST_BYTES) -> set[date]:
    """Return the days of a stage whose rows all have different keys, nulls being equal to each other.

    Of the others nothing is known: a key may be there twice, or it cannot be told here, where a column holds
    floating-point numbers, of which several are equal to Spark, or where there are too many keys.

    Args:
        folder: of the stage; its log names the files.
        most_bytes: that the keys of a day may take in memory.

    Raises:
        DamagedTableError: a file cannot be read.
    """
    names = [name for name in key if name != DAY]
    if not names:
        return set()
    return {
        day
        for day, files in table_snapshot(folder).by_day().items()
        if day is not None and _are_unique((folder / path for path in files), names, most_bytes)
    }


def _are_unique(files: Iterable[Location], names: Sequence[str], most_bytes: int) -> bool:
    import pyarrow as pa

    # Files of two writes may differ in whether a column can be null, which Arrow takes for another schema
    columns: dict[str, list[pa.Array]] = {name: [] for name in names}
    for file in files:
        for batch in row_batches(file, _BATCH_ROWS, names):
            most_bytes -= batch.nbytes
            if most_bytes < 0 or not _can_be_told(batch.schema, names):
                return False
            for name, parts in columns.items():
                parts.append(batch.column(name))
                if parts[-1].type != parts[0].type:
                    return False
    if not all(columns.values()):
        return True
    keys = pa.table({name: pa.chunked_array(parts) for name, parts in columns.items()})
    return bool(keys.group_by(names, use_threads=False).aggregate([]).num_rows == keys.num_rows)


def _can_be_told(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Return whether values of the columns are equal to Arrow just if they are equal to Spark."""
    from pyarrow import types

    exact = (types.is_integer, types.is_string, types.is_boolean, types.is_date, types.is_decimal, types.is_timestamp)
    return all(name in schema.names and any(is_one(schema.field(name).type) for is_one in exact) for name in names)
