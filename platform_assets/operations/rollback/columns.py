"""The columns of a table that is rolled back: those from before, where what is undone had brought others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot
from platform_assets.lakehouse.delta.schema import differing_columns, files_with, schema_at, types_in
from platform_assets.lakehouse.releases import release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.rollback.selection import RollbackError
from platform_assets.records.manifest import DayContent, TableChange


def schema_before(platform: Platform, table: str, undone: Collection[str]) -> str:
    """The Delta schema that a table had before the first of some publications changed its columns.

    Args:
        platform: what to look at.
        undone: publications that are rolled back.

    Returns:
        The schema; empty where none of them changed the columns.
    """
    path, indexed = platform.lake.table_path(table), platform.ledger.indexed()
    for name in sorted(undone, key=lambda name: indexed[name]):
        version = release(platform.lake, indexed[name]).versions[table]
        said = commits.actions(path, version)
        is_its_own = commits.made_by(version, said).publication == name
        if is_its_own and version > 0 and any("metaData" in action for action in said):
            return schema_at(path, version - 1)
    return ""


def refuse_what_would_not_read(
    platform: Platform,
    table: str,
    schema: str,
    contents: Mapping[date, DayContent],
    now: TableSnapshot,
    before: Iterable[TableChange],
) -> None:
    """Refuse columns that files which stay, or come back, were not written for.

    Args:
        platform: what to look at.
        schema: Delta schema that the table is to have.
        contents: what the days are to be.
        now: the table as it is.
        before: what published the days that come back.

    Raises:
        RollbackError: naming the day and who published it.
    """
    path, wanted = platform.lake.table_path(table), types_in(schema)
    there = types_in(now.schema_string)
    staying = [name for name, day in now.days.items() if day not in contents]
    if wrong := _misread(path, there, staying, wanted):
        raise _stays(platform, table, min(day for name in wrong if (day := now.days[name])), _named(there, wanted))
    back = {file.path for content in contents.values() for file in content.files}
    for change in before:
        had = types_in(change.schema_string)
        days = {file.path: day for day, content in change.days.items() for file in content.files if file.path in back}
        if wrong := _misread(path, had, days, wanted):
            raise RollbackError(
                f"What {table} was on {min(days[name] for name in wrong)} before had other columns than the "
                f"table keeps ({_named(had, wanted)}); nothing was rolled back.",
                "Roll back the publication that brought the columns, with all its days.",
            )


def _misread(path: Location, had: Mapping[str, str], files: Collection[str], wanted: Mapping[str, str]) -> list[str]:
    """Those of some files that have a column which is to be another one, or none."""
    differing = differing_columns(had, wanted)
    return files_with(path, files, differing) if differing else []


def _named(had: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    return ", ".join(sorted(differing_columns(had, wanted)))


def _stays(platform: Platform, table: str, day: date, columns: str) -> RollbackError:
    record = platform.ledger.current_days(table, among=[day])[day]
    head = platform.ledger.head(record.publication)
    who = f" ({head.kind} by {head.who}: {head.why})" if head else ""
    return RollbackError(
        f"{table} {day} stays as {record.publication}{who} published it, with columns that would go back to what they "
        f"were before ({columns}); nothing was rolled back.",
        f"Roll back all days with these columns together: `platform-assets rollback {record.publication}` with all its "
        "days, or everything since a release with --to.",
    )
