"""Which deliveries make input days other than they were when a day read them, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.provenance import Explanation, Origin, explain
from platform_assets.records.history import ArrivalRecord


def delivered_since(
    platform: Platform, explanation: Explanation, most: int
) -> Mapping[tuple[str, date], tuple[ArrivalRecord, ...]]:
    """The deliveries that an input day is made of now, and that nothing was made of that the explained day read.

    Args:
        platform: as it is now.
        explanation: of the day.
        most: differing input days that are looked at, the first ones.

    Returns:
        Files and what was decided of them, by table and day of the input; days without such are left out. None at all
        where the explained day read so many days that nobody looked for their files.
    """
    if not _is_known(explanation.origin):
        return {}
    then = {_name(file) for file in _files(explanation.origin)}
    found: dict[tuple[str, date], tuple[ArrivalRecord, ...]] = {}
    for difference in explanation.differences[:most]:
        now = explain(platform, platform.catalogue[difference.table], difference.day).origin
        if new := tuple(file for file in _files(now) if _name(file) not in then):
            found[difference.table, difference.day] = new
    return found


def _name(file: ArrivalRecord) -> tuple[str, str]:
    return file.table, file.path


def _is_known(origin: Origin | None) -> bool:
    return origin is None or (origin.arrivals is not None and all(map(_is_known, origin.inputs)))


def _files(origin: Origin | None) -> Iterator[ArrivalRecord]:
    """All below an origin."""
    if origin is not None:
        yield from origin.arrivals or ()
        for read in origin.inputs:
            yield from _files(read)
