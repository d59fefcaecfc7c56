"""Files that a day was made from and that are others in the landing area by now, of which nothing was taken."""

from __future__ import annotations

from collections.abc import Iterator

from platform_assets.engine.ingest.listing import each_once, list_arrivals
from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.provenance import Origin
from platform_assets.sources.landing import Problem


def replaced_files(platform: Platform, origin: Origin) -> tuple[Problem, ...]:
    """What is wrong with each, and what to do; none of a day made from more days than files are named of.

    Args:
        platform: as it is now.
        origin: of the day.
    """
    return each_once(_replaced(platform, origin))


def _replaced(platform: Platform, origin: Origin) -> Iterator[Problem]:
    if taken := [arrival for arrival in origin.arrivals or () if arrival.kind != "withdrawal"]:
        # Of rows that somebody approved, the file is the origin of what was approved.
        files = {path for arrival in taken for path in (arrival.path, arrival.origin) if path}
        listed = list_arrivals(platform, platform.catalogue[origin.table], among=files)
        yield from (problem for problem in listed.problems if problem.is_replaced)
    for read in origin.inputs:
        yield from _replaced(platform, read)
