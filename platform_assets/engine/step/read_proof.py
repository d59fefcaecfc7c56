"""Bounded reads, proved: what the plan that is executed reads, against what the contract declares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import date

from pyspark.sql import DataFrame

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import Files
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.windows import FilesRead, first_outside, which
from platform_assets.spark.tables.scans import PlanInput, scans_of


class UndeclaredReadError(PlatformError):
    """A transform read something that its contract does not declare; nothing of its step was published."""


def files_read(contract: Contract, days: Collection[date], snapshot: LakeSnapshot, frame: DataFrame) -> FilesRead:
    """Return how many files of which days of its inputs a step reads.

    Args:
        frame: their rows, not computed yet.

    Raises:
        UndeclaredReadError: it reads another table or file, another release, or a day that no window holds.
    """
    platform = snapshot.platform
    inputs = [_Input(platform, read.table, snapshot.files(read.table)) for read in contract.inputs]
    locations: defaultdict[str, set[Location]] = defaultdict(set)
    for scan in scans_of(frame):
        for table, files in _declared(platform.lake, contract, days, inputs, scan).items():
            locations[table] |= files
    read = {
        declared.table: Counter(declared.live[file] for file in locations[declared.table])
        for declared in inputs
        if declared.table in locations
    }
    if outside := first_outside(contract, days, snapshot.calendar, read):
        table, day = outside
        raise UndeclaredReadError(
            f"The transform of {contract.name} reads {table} on {day}, which no window of {which(days)} holds; "
            "no day was published with it.",
            f"Read {table} only through the parameter {table.split('.')[1]}, or declare a longer window.",
        )
    return read


def refuse_jobs_of_its_own(contract: Contract, jobs: int) -> None:
    """Refuse a transform that computes while it describes its rows: nobody can bound that.

    Raises:
        UndeclaredReadError: it started jobs.
    """
    if jobs:
        raise UndeclaredReadError(
            f"The transform of {contract.name} started {jobs:,} Spark jobs of its own instead of describing its rows, "
            "so that what it reads cannot be told; no day was published with it.",
            "Leave out collect, count, first, checkpoint and the like; give a pivot its values.",
        )


class _Input:
    """A table that may be read: its files, with their days."""

    def __init__(self, platform: Platform, table: str, days: Files) -> None:
        self.table, self.folder = table, platform.lake.table_path(table)
        self.live = {
            self.folder / file.path: platform.counted_on(table, day) for day, files in days.items() for file in files
        }


def _declared(
    lake: Lake, contract: Contract, days: Collection[date], inputs: Sequence[_Input], scan: PlanInput
) -> dict[str, set[Location]]:
    """Return what a scan reads of each input."""
    locations: defaultdict[str, set[Location]] = defaultdict(set)
    read = scan.files | ({scan.table} if scan.table else set())
    for path in read or {None}:
        declared = next(
            (declared for declared in inputs if path and (path == declared.folder or path.below(declared.folder))), None
        )
        if declared is None or path is None:
            raise UndeclaredReadError(
                f"The transform of {contract.name} reads {_what(lake, path, scan)} for {which(days)}, which its "
                "contract does not declare; no day was published with it.",
                f"Declare it as an Input of {contract.name} and read it through the parameter; rows that are part of "
                "the code belong into expressions.",
            )
        if path in scan.files and path not in declared.live:
            raise UndeclaredReadError(
                f"The transform of {contract.name} reads {path.below(declared.folder)} of {declared.table} for "
                f"{which(days)}, which is not part of the release that it was given; no day was published "
                "with it.",
                f"Read {declared.table} only through the parameter {declared.table.split('.')[1]}.",
            )
        locations[declared.table] |= scan.files & {path}
    return locations


def _what(lake: Lake, path: Location | None, scan: PlanInput) -> str:
    if path is None:
        return f"what Spark calls {scan.what}"
    inside = path.below(lake.root)
    return ".".join(inside.split("/")[:2]) if inside else str(path)
