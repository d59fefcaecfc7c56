"""Make the contents of days in a manifest from staged files and their profiles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.delta.schema import schema_at, types_in
from platform_assets.lakehouse.delta.statistics import staged_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.quality.findings import FELL_FROM, LAG
from platform_assets.quality.gates import is_drift
from platform_assets.records.code_version import Version
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, DayContent, TableChange, platform_version

if TYPE_CHECKING:
    from platform_assets.spark.compare.profiles import RawProfile

Files = Mapping[date, tuple[DataFile, ...]]

COMPARED = "compared_within_days"
"""The figure of a raw day that says how far its keys were compared with those of other days, all of them.

Its name changed when equal versions got tombstones on each other's days, so that they are compared again.
"""

FARTHEST = "farthest_moves_within_days"
"""The figure of a raw day that says how far any of its keys were."""

AHEAD = "ahead"
"""The figure of a day that says how many of its rows arrived before it, where any did."""

TOGETHER = "days_together"
"""The figure of a computed day that says how many days with rows were computed with it, itself included."""


def is_kept_aside(figure: str) -> bool:
    """Return whether a figure is only for the next computation of a day, not for readers."""
    return figure in (TOGETHER, FELL_FROM, LAG) or is_drift(figure)


def most_together(days: Mapping[date, DayRecord], version: Version) -> int:
    """Return how many days with rows this code and contract have at least computed together, and so proved."""
    return max((record.figures.get(TOGETHER, 0) for record in days.values() if record.made_by == version), default=0)


def files_at(lake: Lake, table: str, version: int | None) -> Files:
    """Return the live files of each day of a table at a version; none if it was never published."""
    return {} if version is None else live_files(lake.table_path(table), version)


def staged_at(lake: Lake, table: str, publication: str) -> Files:
    """Return the files of each staged day of a table; none if nothing was staged."""
    if not (lake.stage_path(table, publication) / "_delta_log").exists():
        return {}
    _, files = staged_files(lake, table, publication)
    return files


def in_other_files(
    record: DayRecord, before: Iterable[DataFile], files: tuple[DataFile, ...], computed: str, **changes: Any
) -> DayContent:
    """Return a day's content in other files, with changed fields.

    Args:
        computed: publication that computed it.
        changes: fields that differ from the record.
    """
    same = {name: getattr(record, name) for name in ("digest", "fingerprint", "rows", "figures", "warnings")}
    return DayContent(
        files=files,
        base=tuple(file.path for file in before),
        bytes=sum(file.size for file in files),
        restores=computed,
        **same | changes,
    )


def are_there(table_path: Location, files: Collection[DataFile]) -> bool:
    """Check that files of a table exist, with the recorded size."""
    return all((table_path / file.path).size() == file.size for file in files)


def schema_to_replace(lake: Lake, release: Release, table: str, schema_string: str) -> str:
    """Return the schema of a table at a release where days of another schema are published; empty if it has none."""
    version = release.versions.get(table)
    there = "" if version is None else schema_at(lake.table_path(table), version)
    return there if there and types_in(there) != types_in(schema_string) else ""


def replaced(
    live: Files,
    staged: Files,
    digests: Mapping[date, Digest],
    made_from: Mapping[date, str],
    figures: Mapping[date, Mapping[str, int]],
) -> dict[date, DayContent]:
    """Return days whose whole content is replaced by the staged files.

    Args:
        digests: digests of the days to replace; a day without staged files becomes empty.
    """
    return {
        day: _content(live.get(day, ()), staged.get(day, ()), digest, figures.get(day, {})).model_copy(
            update={"fingerprint": made_from[day]}
        )
        for day, digest in digests.items()
    }


def appended(
    live: Files, staged: Files, added: RawProfile, before: Mapping[date, DayRecord], compared: int
) -> dict[date, DayContent]:
    """Return days of raw with the staged files added to theirs; their digests add up.

    Args:
        compared: how many days away the staged rows' keys were compared.
    """
    contents: dict[date, DayContent] = {}
    for day, files in staged.items():
        had = before.get(day)
        digest = (Digest.parse(had.digest) if had else Digest()) + added.digests[day]
        figures = _compared_so(had, compared)
        for name, more in (("tombstones", added.tombstones[day]), ("withdrawals", added.withdrawals[day])):
            figures[name] = figures.get(name, 0) + more
        for name, more in ahead_figures(added).get(day, {}).items():
            figures[name] = figures.get(name, 0) + more
        if day in added.lags and (had is None or LAG in had.figures or not had.rows):
            figures[LAG] = figures.get(LAG, 0) + added.lags[day]
        old = live.get(day, ())
        contents[day] = _content(old, (*old, *files), digest, figures)
    return contents


def _compared_so(day: DayRecord | None, compared: int) -> dict[str, int]:
    """Return the figures of a raw day after more of its rows were compared with other days; the day may be new.

    The least compared distance of its rows counts; a contract may have looked farther, and later less far.
    """
    figures = dict(day.figures) if day else {}
    least = min(figures.get(COMPARED, 0), compared) if day and day.rows else compared
    farthest = max(figures.get(FARTHEST, 0), compared)
    return figures | ({COMPARED: least, FARTHEST: farthest} if farthest else {})


def unchanged(live: Files, days: Mapping[date, DayRecord]) -> dict[date, DayContent]:
    """Return some days of raw unchanged."""
    return {
        day: _content(live.get(day, ()), live.get(day, ()), Digest.parse(record.digest), record.figures)
        for day, record in days.items()
    }


def ahead_figures(staged: RawProfile) -> dict[date, dict[str, int]]:
    """Return the part of figures about rows that arrived before their day; nothing without such rows."""
    return {day: {AHEAD: rows} for day, rows in staged.ahead.items() if rows}


def appended_change(
    platform: Platform, release: Release, table: str, publication: str, schema_string: str, added: RawProfile
) -> TableChange:
    """Return the change that adds staged rows to the days of a table at a release."""
    days: dict[date, DayContent] = {}
    if added.digests:
        live = files_at(platform.lake, table, release.versions.get(table))
        staged = staged_at(platform.lake, table, publication)
        compared = platform.catalogue[table].moves_within_days if table in platform.catalogue.names else 0
        days = appended(live, staged, added, platform.ledger.current_days(table, at=release.number), compared)
    return table_change(platform.lake, release, table, schema_string, days, added.software)


def table_change(
    lake: Lake,
    release: Release,
    table: str,
    schema_string: str,
    days: dict[date, DayContent],
    software: Mapping[str, str] | None = None,
) -> TableChange:
    """Return the change of days of a raw table, or of its refused or late rows.

    Args:
        software: software that computed them, besides this package; None if they were not computed again.
    """
    return TableChange(
        table=table,
        schema_string=schema_string,
        days=days,
        replaces_schema=schema_to_replace(lake, release, table, schema_string),
        software={} if software is None else computed_with(software),
    )


def computed_with(software: Mapping[str, str]) -> dict[str, str]:
    """Return the software that computes some days, for a manifest: this package and its libraries."""
    return {"platform": platform_version(), **software}


def loaded_empty(days: Collection[date]) -> dict[date, DayContent]:
    """Return days that are loaded although nothing was delivered for them."""
    return {day: _content((), (), Digest(), {}) for day in days}


def _content(
    old: tuple[DataFile, ...], new: tuple[DataFile, ...], digest: Digest, figures: Mapping[str, int]
) -> DayContent:
    return DayContent(
        files=new,
        base=tuple(file.path for file in old),
        digest=str(digest),
        rows=digest.rows,
        bytes=sum(file.size for file in new),
        figures=dict(figures),
    )
