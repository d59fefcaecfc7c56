"""The large days of what a step reads, and in how many parts they are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.parts import parts_of
from platform_assets.planning.windows import union_read


def large_days(contract: Contract, days: Collection[date], snapshot: LakeSnapshot) -> dict[date, int]:
    """The days that a step reads and that are large, each with its parts; told from the log alone.

    Args:
        contract: of a silver or gold table.
        days: to compute together.
        snapshot: to read.
    """
    platform, sizes = snapshot.platform, Counter[date]()
    for read in contract.inputs:
        spans = union_read(read.window, days, platform.calendar)
        for day, files in snapshot.files(read.table).items():
            if any(first <= day <= last for first, last in spans):
                sizes[day] += sum(file.size for file in files)
    return parts_of(sizes, platform.settings.part_bytes)
