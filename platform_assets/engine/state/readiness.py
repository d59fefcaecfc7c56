"""Which days of a table can be computed now, which need not be, and what the others wait for.

Answered from the ledger, without a session; the only rows read are those of reference data whose content is new
(`engine.state.reference_data`), once for each content.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import Contract, Input, Span
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import Basis
from platform_assets.engine.state.reference_data import views_read
from platform_assets.engine.state.schema_changes import changes_on_disk
from platform_assets.planning.fingerprints import Digests, fingerprints, refused_now
from platform_assets.planning.loaded import comes_with
from platform_assets.planning.ties import still_refused
from platform_assets.planning.windows import day_range, days_read
from platform_assets.quality.findings import Check
from platform_assets.records.history import DayRecord, Hold, hold_of_each_day

HoldsByDay = Mapping[date, Hold]


@dataclass(frozen=True)
class Readiness:
    """Where some days of a table stand.

    Args:
        ready: days to compute now, oldest first.
        made_from: the fingerprint each of them would get.
        blocked: days that an input keeps from being computed, with the reason and what to do.
        held: days whose content was refused and would come out as it did.
        up_to_date: days that are what they would become.
        notes: what a reader of a ready day should know about its inputs.
        before: content of every day of the table, as it is now.
        holds: the newest hold of every held day of the table.
        known_holds: all of them.
    """

    ready: tuple[date, ...] = ()
    made_from: Mapping[date, str] = field(default_factory=dict)
    blocked: dict[date, str] = field(default_factory=dict)
    held: dict[date, Hold] = field(default_factory=dict)
    up_to_date: tuple[date, ...] = ()
    notes: dict[date, tuple[str, ...]] = field(default_factory=dict)
    before: Mapping[date, DayRecord] = field(default_factory=dict)
    holds: HoldsByDay = field(default_factory=dict)
    known_holds: tuple[Hold, ...] = ()


def readiness(
    platform: Platform,
    contract: Contract,
    days: Collection[date],
    basis: Basis,
    *,
    forced: Collection[date] = (),
    accept: Collection[Check] = (),
) -> Readiness:
    """Where some days of a silver or gold table stand.

    Args:
        platform: what to work with.
        contract: of the table.
        days: days of it.
        basis: to read.
        forced: those of them that count neither as up to date nor as refused before.
        accept: checks whose findings are accepted; what they refused is tried again.
    """
    digests = {read.table: basis.digests(read.table) for read in contract.inputs}
    holds_on = {read.table: _holds(basis, read.table) for read in contract.inputs}
    blocked = {
        day: reason
        for read in contract.inputs
        for day in days
        if (reason := _blocks(basis, read, day, digests, holds_on[read.table]))
    }
    left = sorted(set(days) - set(blocked))
    before = basis.days(contract.name)
    holds = basis.holds(contract.name)
    tied = [(hold.day, hold.tied_to) for hold in holds if hold.tied_to is not None]
    views = views_read([contract], basis)
    now = fingerprints(contract, {*left, *(root for _, root in tied)}, digests, platform.calendar, views)
    made_from = {day: now[day] for day in left if day in now}
    version, free = platform.version(contract.name), set(left).difference(forced)
    by_gate = [hold for hold in holds if hold.tied_to is None and hold.gate not in accept]
    refused = still_refused(((hold.day, refused_now(hold.refused, version)) for hold in by_gate), tied, now)
    held = {hold.day: hold for hold in holds if hold.day in refused & free}
    # Of a day whose configuration nobody recorded, the columns on disk tell whether it was another one.
    columns_fit = not (free and changes_on_disk(basis, contract))
    still_right = {
        day
        for day in free & before.keys() - {hold.day for hold in holds}
        if made_from.get(day) == (found := before[day]).fingerprint
        and found.code_version == version.code
        and (found.configuration == version.configuration or (columns_fit and not found.configuration))
    }
    up_to_date = tuple(sorted(still_right))
    ready = tuple(day for day in left if day not in held and day not in up_to_date)
    return Readiness(
        ready=ready,
        made_from=made_from,
        blocked=blocked,
        held=held,
        up_to_date=up_to_date,
        notes={day: notes for day in ready if (notes := _notes(platform, contract, day, holds_on))},
        before=before,
        holds={hold.day: hold for hold in holds},
        known_holds=holds,
    )


def _holds(basis: Basis, table: str) -> HoldsByDay:
    """The hold that counts for readers of every held day, oldest day first."""
    return {day: hold for (_, day), hold in hold_of_each_day(basis.holds(table)).items()}


def _blocks(basis: Basis, read: Input, day: date, digests: Digests, holds: HoldsByDay) -> str | None:
    """Why an input keeps a day from being computed."""
    start, end = days_read(read.window, day, basis.platform.calendar)
    lacking = next((needed for needed in day_range(start, end) if needed not in digests[read.table]), None)
    held = holds.get(day if lacking is None else lacking)
    waits = lacking is not None or (read.window == Span(0, 0) and not (held and held.is_of_good_content))
    if held is not None and waits:
        has = "its last good content stays" if lacking is None else "it has no content yet"
        return (
            f"{read.table} is held on {held.day} and {has}: {held.reason}. "
            f"Correct its input or its code and recompute {read.table} for {held.day}; this day is then stale."
        )
    if lacking is None:
        return None
    source = basis.platform.catalogue[read.table]
    if source.source is None:
        return f"{read.table} has never been loaded for {lacking}. Materialize {read.table} for {lacking} first."
    if basis.days(read.table, [lacking]):
        return (
            f"{read.table} has rows of {lacking} already, and comes whole with what arrives on "
            f"{comes_with(source, lacking)}: nothing that arrived then or later was taken yet. Wait for that delivery."
        )
    todo = f"Deliver its rows, or declare the day closed for {lacking} first."
    return f"{read.table} has never been loaded for {lacking}. {todo}"


def _notes(platform: Platform, contract: Contract, day: date, holds_on: Mapping[str, HoldsByDay]) -> tuple[str, ...]:
    """Which inputs count with the last good content of held days."""
    notes: list[str] = []
    for read in contract.inputs:
        holds = holds_on[read.table]
        start, end = days_read(read.window, day, platform.calendar)
        if held := _between(list(holds), start, end):
            more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
            notes.append(
                f"reads {read.table} with its last good content of {held[0]}{more} (held: {holds[held[0]].reason})"
            )
    return tuple(notes)


def _between(days: Sequence[date], start: date, end: date) -> Sequence[date]:
    return days[bisect_left(days, start) : bisect_right(days, end)]
