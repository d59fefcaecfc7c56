"""What was read against what was declared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.planning.windows import Calendar, in_any, ranges_read, union_read

FilesRead = Mapping[str, Mapping[date, int]]
"""How many files of each day were read, by input table."""


@dataclass(frozen=True)
class Read:
    """How much of an input was read.

    Args:
        days: of which files were read; a day that is loaded and empty has none.
    """

    days: int = 0
    files: int = 0

    def __add__(self, other: Read) -> Read:
        return Read(self.days + other.days, self.files + other.files)


def first_outside(
    contract: Contract, days: Collection[date], calendar: Calendar, read: FilesRead
) -> tuple[str, date] | None:
    """The input and day of it that was read though no window of these days holds it; None where all is as declared."""
    for declared in contract.inputs:
        spans = union_read(declared.window, days, calendar)
        for day in sorted(read.get(declared.table, ())):
            if not in_any(spans, day):
                return declared.table, day
    return None


def read_in_all(read: FilesRead) -> dict[str, Read]:
    """What some days together made of each input necessary."""
    return {table: Read(len(files), sum(files.values())) for table, files in read.items()}


def read_for_day(contract: Contract, day: date, calendar: Calendar, read: FilesRead) -> Read:
    """The part of what was read that one of the days needed, over all inputs."""
    total = Read()
    for declared in contract.inputs:
        spans = ranges_read(declared.window, day, calendar)
        mine = [files for at, files in read.get(declared.table, {}).items() if in_any(spans, at)]
        total += Read(len(mine), sum(mine))
    return total
