"""What a rollback refuses: neither what it undid nor the same by today's code is made of its days again.

The publication says so in its manifest, from which whoever indexes it holds the days.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import table_states
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot
from platform_assets.lakehouse.delta.schema import differing_columns, files_with, schema_at, types_in
from platform_assets.lakehouse.releases import Release, made_by, release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.rollback.selection import RollbackError
from platform_assets.planning.day_states import same_input
from platform_assets.planning.key_scope import is_mixed
from platform_assets.planning.rollback import TableDay, refusals
from platform_assets.planning.table_states import TableStates
from platform_assets.records.code_version import Version
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DayContent, TableChange
from platform_assets.records.refused import Attempt
from platform_assets.records.staged_days import StagedDays


def with_refusals(
    platform: Platform,
    now: Release,
    changes: Sequence[TableChange],
    undone: Mapping[TableDay, Sequence[DayRecord]],
    becomes: Mapping[TableDay, DayRecord | None],
) -> tuple[TableChange, ...]:
    """Return the changes of a rollback, each with what must not be made of its days again.

    Args:
        undone: for every day all that it was and is to be no more.
        becomes: what every day is then, None if as if never computed.
    """
    then = LakeSnapshot(platform, now, StagedDays(tables={change.table: change for change in changes}))
    computed = [platform.catalogue[change.table] for change in changes if change.table in platform.catalogue.names]
    tables = table_states(then, {c.name for c in computed} | {read.table for c in computed for read in c.inputs})

    def refused(change: TableChange) -> dict[date, tuple[Attempt, ...]]:
        gone = {day: list(_made_from(platform, undone[change.table, day])) for day in change.days}
        if change.table not in platform.catalogue.names:  # what would be made of its days, its own domain knows
            return {day: tuple(sorted(refusals(gone[day], Version()))) for day in change.days}
        made = {day: record.made_by if (record := becomes[change.table, day]) else Version() for day in change.days}
        free = _as_they_would_be(tables, platform.catalogue[change.table], made, platform.version(change.table))
        today = platform.version(change.table)
        return {day: () if day in free else tuple(sorted(refusals(gone[day], today))) for day in change.days}

    return tuple(
        change if change.table.startswith("quarantine.") else change.model_copy(update={"refuses": refused(change)})
        for change in changes
    )


def _made_from(platform: Platform, undone: Iterable[DayRecord]) -> Iterator[tuple[str, Version]]:
    """Yield what days were made from and by; where only some keys were, what all of such a day would have been, too.

    Else the next refresh would make just these rows again, and the others with them.
    """
    for record in undone:
        yield record.fingerprint, record.made_by
        if is_mixed(record.fingerprint, record.code_version):
            change = made_by(platform.lake, record.publication, record.table, record.day)
            if scope := change.days[record.day].scope:
                yield scope.made_from, Version(change.code_version, record.configuration)


def _as_they_would_be(
    tables: TableStates, contract: Contract, made_by: Mapping[date, Version], now: Version
) -> tuple[date, ...]:
    """Return days whose inputs went back with them, so that nothing has to keep them as they are.

    Not those that today's code or contract would make differently, of which a refresh would make again what was rolled
    back; but where the table has to follow its contract, only all of its days together can be kept from it.

    Args:
        tables: with the days as they were before.
        made_by: by what each of the days was computed, as far as that is known.
        now: by what they would be computed today.
    """
    other = {day for day, version in made_by.items() if any(version.differs(now))}
    return tuple(
        day for day in same_input(contract, made_by, tables) if day not in other or contract.name in tables.changing
    )


def schema_before(platform: Platform, table: str, undone: Collection[str]) -> str:
    """Return the Delta schema that a table had before the first of some publications changed its columns.

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
        before: what published the days that come back.
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
    """Return those of some files that have a column which is to be another one, or none."""
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
