"""Bounded reads, proved: what the plan that is executed reads, against what the contract declares."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame

from platform_assets.compute.scans import Scan, scans_of
from platform_assets.contracts import DAY, Contract
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.reads import FilesRead, first_outside

_DAY_OF_FILE = re.compile(rf"/{DAY}=(\d{{4}}-\d{{2}}-\d{{2}})/[^/]+$")


class UndeclaredReadError(PlatformError):
    """A transform read something that its contract does not declare; nothing of its step was published."""


def files_read(
    platform: Platform, contract: Contract, days: Collection[date], release: Release, frame: DataFrame
) -> FilesRead:
    """How many files of which days of its inputs a step reads.

    Args:
        platform: what to work with.
        contract: of the table.
        days: that are computed.
        release: that is to be read.
        frame: their rows, not computed yet.

    Raises:
        UndeclaredReadError: it reads another table or file, another version, or a day that no window holds.
    """
    inputs = {platform.lake.table_path(read.table): read.table for read in contract.inputs}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for scan in scans_of(frame):
        found[_declared(platform.lake, contract, days, release, inputs, scan)] |= scan.files
    read = {table: Counter(_days(files)) for table, files in found.items()}
    if outside := first_outside(contract, days, platform.calendar, read):
        table, day = outside
        raise UndeclaredReadError(
            f"The transform of {contract.name} reads {table} on {day}, which no window of {_shown(days)} holds; "
            "nothing was published.",
            f"Read {table} only through the parameter {table.split('.')[1]}, or declare a longer window.",
        )
    return read


def refuse_jobs_of_its_own(contract: Contract, jobs: int) -> None:
    """A transform describes its rows; what it computes while it does so, nobody can bound.

    Raises:
        UndeclaredReadError: it started jobs.
    """
    if jobs:
        raise UndeclaredReadError(
            f"The transform of {contract.name} started {jobs:,} Spark jobs of its own instead of describing its rows, "
            "so that what it reads cannot be told; nothing was published.",
            "Leave out collect, count, first, checkpoint and the like; give a pivot its values.",
        )


def _declared(
    lake: Lake,
    contract: Contract,
    days: Collection[date],
    release: Release,
    inputs: Mapping[Path, str],
    scan: Scan,
) -> str:
    """The input that a scan reads."""
    path = scan.path
    table = next((name for folder, name in inputs.items() if path and path.is_relative_to(folder)), None)
    if table is None:
        raise UndeclaredReadError(
            f"The transform of {contract.name} reads {_what(lake, scan)} for {_shown(days)}, which its contract does "
            "not declare; nothing was published.",
            f"Declare it as an Input of {contract.name} and read it through the parameter; rows that are part of the "
            "code belong into expressions.",
        )
    if scan.version != release.versions.get(table):
        what = "files" if scan.version is None else f"version {scan.version}"
        raise UndeclaredReadError(
            f"The transform of {contract.name} reads {what} of {table} for {_shown(days)}, not version "
            f"{release.versions.get(table)} that it was given; nothing was published.",
            f"Read {table} only through the parameter {table.split('.')[1]}.",
        )
    return table


def _what(lake: Lake, scan: Scan) -> str:
    if scan.path is None:
        return f"what Spark calls {scan.what}"
    if scan.path.is_relative_to(lake.root):
        return ".".join(scan.path.relative_to(lake.root).parts[:2])
    return str(scan.path)


def _days(files: Iterable[str]) -> Iterator[date]:
    for file in files:
        found = _DAY_OF_FILE.search(file)
        yield date.fromisoformat(found[1]) if found else date.min


def _shown(days: Collection[date]) -> str:
    first, last = min(days), max(days)
    return str(first) if first == last else f"{first} to {last}"
