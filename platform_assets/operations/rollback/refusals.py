"""What a rollback refuses: neither what it undid nor the same by today's code is made of its days again.

The publication says so in its manifest, from which whoever indexes it holds the days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import table_states
from platform_assets.lakehouse.releases import Release, made_by
from platform_assets.planning.day_states import TableStates, same_input
from platform_assets.planning.key_scope import is_mixed
from platform_assets.planning.rollback import TableDay, refusals
from platform_assets.records.code_version import Version
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import TableChange
from platform_assets.records.refused import Attempt
from platform_assets.records.staged_days import StagedDays


def with_refusals(
    platform: Platform,
    now: Release,
    changes: Sequence[TableChange],
    undone: Mapping[TableDay, Sequence[DayRecord]],
    becomes: Mapping[TableDay, DayRecord | None],
) -> tuple[TableChange, ...]:
    """The changes of a rollback, each with what must not be made of its days again.

    Args:
        now: the release that is rolled back.
        changes: what becomes of each table.
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
    """What days were made from and by; where only some keys were, what all of such a day would have been, too.

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
    """Days whose inputs went back with them, so that nothing has to keep them as they are.

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
