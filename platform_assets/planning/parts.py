"""A day that is large is computed by several tasks and lies in several files: when, and in how many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from platform_assets.records.manifest import DataFile

NO_PARTS: Mapping[date, int] = {}
"""All days lie in one file each."""

AS_ROWS = 4
"""How many times as many bytes rows take between two tasks as in a file: a rule of thumb, by which nothing but the size
of files is decided."""


def parts_of(sizes: Mapping[date, int], part_bytes: int) -> dict[date, int]:
    """In how many parts each large day is computed and written; days that are one part are left out.

    Args:
        sizes: bytes of every day, as files.
        part_bytes: that one task and one file should have, and no more.
    """
    return {day: -(-size // part_bytes) for day, size in sizes.items() if size > part_bytes}


def whole_parts_of(sizes: Mapping[date, int], part_bytes: int) -> dict[date, int]:
    """The same, for files that are not to be small: none has less, but for chance."""
    return {day: size // part_bytes for day, size in sizes.items() if size >= 2 * part_bytes}


def bytes_among(files: Mapping[date, Collection[DataFile]], names: Collection[str]) -> dict[date, int]:
    """Bytes of every day in some of its files: what is written by itself has parts by itself."""
    among = frozenset(names)
    return {day: sum(file.size for file in of_day if file.path in among) for day, of_day in files.items()}


def has_heavy_key(parts: int, rows: int, most: int) -> bool:
    """Whether rows of a single key are more than a part of its day, so that one task would work while others wait."""
    return parts > 1 and most * parts > rows
