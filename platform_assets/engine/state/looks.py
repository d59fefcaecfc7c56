"""The last look at all days: had from the ledger, and kept there once all days were looked at again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.ledger.errors import LedgerError
from platform_assets.planning.day_states import States, TableStates, not_up_to_date
from platform_assets.planning.last_look import Look, Since, look_for, open_days


def last_look(snapshot: LakeSnapshot) -> Since | None:
    """What was found before and what happened since; None where all days have to be looked at, as in a stage."""
    platform = snapshot.platform
    if _is_staged(snapshot):
        return None
    since = platform.ledger.looks.since(
        _look_for(platform),
        at=snapshot.number,
        calendar=platform.calendar,
        today=platform.settings.current_day(),
    )
    return since and replace(
        since,
        published={
            table: {*days, *(platform.counted_on(table, day) for day in days)}
            for table, days in since.published.items()
        },
    )


def begin_look(snapshot: LakeSnapshot, since: Since | None) -> str:
    """The mark with which a look that begins now can be kept; empty where it cannot be, as in a stage.

    Args:
        snapshot: to look at; nothing of it was read yet.
    """
    if since is not None:
        return since.mark
    platform = snapshot.platform
    if _is_staged(snapshot) or platform.calendar.last < platform.calendar.first:
        return ""
    with suppress(LedgerError):
        return platform.ledger.looks.begin(_look_for(platform), snapshot.number)
    return ""


def keep_look(snapshot: LakeSnapshot, tables: TableStates, states: States, since: Since | None, mark: str) -> None:
    """Remember what was found, if it is not what is known already.

    A ledger that cannot be written costs the next plan time, and nothing else.

    Args:
        states: of all their days that may be anything but up to date.
        mark: had from `begin_look`.
    """
    platform, calendar = snapshot.platform, tables.calendar
    if not mark:
        return
    found = open_days(platform.catalogue, tables, {table: not_up_to_date(of) for table, of in states.items()})
    look = Look(
        last=calendar.last,
        today=platform.settings.current_day(),
        open_days={table: days for table, days in found.items() if days},
        contents=tables.contents,
    )
    if since is None or since.published or since.look != look:
        with suppress(LedgerError):
            platform.ledger.looks.keep(_look_for(platform), snapshot.number, look, mark)


def _is_staged(snapshot: LakeSnapshot) -> bool:
    return bool(snapshot.staged.tables or snapshot.staged.over or snapshot.staged.holds)


def _look_for(platform: Platform) -> str:
    configurations = {name: of_table.hash for name, of_table in platform.configurations.items()}
    return look_for(platform.catalogue, platform.versions, configurations, platform.calendar.first)
