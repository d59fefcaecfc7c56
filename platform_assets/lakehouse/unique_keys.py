"""Days of a stage in which no two rows have one key, found in their files without Spark.

Spark would have to deal out all rows by their keys, since it does not know that those of a day lie together. Here a day
is looked at by itself, in a tenth of the time. Only that keys are unique is said: what else there is, somebody has to
look for who tells which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 16_384
_MOST_BYTES = 64 * 1024 * 1024
"""Of the keys of a day that are held at once; a day with more is left to Spark."""


def days_of_unique_keys(folder: Location, key: Sequence[str], most_bytes: int = _MOST_BYTES) -> set[date]:
    """The days of a stage whose rows all have different keys, nulls being equal to each other.

    Of the others nothing is known: a key may be there twice, or it cannot be told here, where a column holds
    floating-point numbers, of which several are equal to Spark, or where there are too many keys.

    Args:
        folder: of the stage; its log names the files.
        key: columns of the natural key.
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
    """Whether values of the columns are equal to Arrow just if they are equal to Spark."""
    from pyarrow import types

    exact = (types.is_integer, types.is_string, types.is_boolean, types.is_date, types.is_decimal, types.is_timestamp)
    return all(name in schema.names and any(is_one(schema.field(name).type) for is_one in exact) for name in names)
