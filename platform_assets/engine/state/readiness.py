"""Which days of a table can be computed now, which need not be, and what the others wait for.

Answered from the ledger, without a session; the only rows read are those of reference data whose content is new
(`engine.state.reference_data`), once for each content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import at_root_now, states_around
from platform_assets.planning.day_states import Blocked, Held, Missing, Stale, UpToDate
from platform_assets.planning.loaded import comes_with
from platform_assets.planning.windows import days_in, ranges_read
from platform_assets.quality.findings import Check
from platform_assets.records.history import CIRCUIT, DayRecord, Hold

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
    contract: Contract,
    days: Collection[date],
    snapshot: LakeSnapshot,
    *,
    forced: Collection[date] = (),
    accept: Collection[Check] = (),
) -> Readiness:
    """Return where some days of a silver or gold table stand.

    Args:
        forced: those of them that count neither as up to date nor as refused before.
        accept: checks whose findings are accepted; what they refused is tried again.
    """
    platform = snapshot.platform
    tables, states = states_around(snapshot, contract, days, forced=forced, accept=accept)
    holds = snapshot.holds_of(contract.name)
    ready = {day: state.fingerprint for day, state in states.items() if isinstance(state, Stale)}
    return Readiness(
        ready=tuple(ready),
        made_from=ready,
        blocked={day: _why(snapshot, state) for day, state in states.items() if isinstance(state, Blocked)}
        | {day: _no_day(platform, day) for day, state in states.items() if isinstance(state, Missing)},
        held={day: state.hold for day, state in states.items() if isinstance(state, Held)},
        up_to_date=tuple(day for day, state in states.items() if isinstance(state, UpToDate)),
        notes={day: notes for day in ready if (notes := _notes(platform, contract, day, tables.held))},
        before=snapshot.days(contract.name),
        holds={hold.day: hold for hold in holds},
        known_holds=holds,
    )


def _why(snapshot: LakeSnapshot, state: Blocked) -> str:
    """Return what keeps a day from being computed, and what to do, for a person."""
    state = at_root_now(snapshot, state)
    table, day = state.table, state.day
    if state.hold is not None and state.hold.gate == CIRCUIT:
        return f"{state.hold.reason}. {state.hold.overruled_by} says what ends that; readers keep what they have."
    if state.hold is not None:
        has = "its last good content stays" if state.is_there else "it has no content yet"
        if state.hold.lasts:
            return f"{table} is held on {day} and {has}: {state.hold.reason}. {state.hold.overruled_by} lifts that."
        return (
            f"{table} is held on {day} and {has}: {state.hold.reason}. "
            f"Correct its input or its code and recompute {table} for {day}; this day is then stale."
        )
    source = snapshot.platform.catalogue[table]
    if source.source is None:
        return f"{table} has never been loaded for {day}. Materialize {table} for {day} first."
    if snapshot.days(table, [day]):
        return (
            f"{table} has rows of {day} already, and comes whole with what arrives on "
            f"{comes_with(source, day)}: nothing that arrived then or later was taken yet. Wait for that delivery."
        )
    return f"{table} is not delivered yet for {day}. Deliver its rows, or declare the day closed for {day} first."


def _no_day(platform: Platform, day: date) -> str:
    calendar = platform.calendar
    return (
        f"{day} is no day here: the calendar goes from {calendar.first} to {calendar.last}. Wait until it has come, "
        "see that the clock of this machine is right, or correct `calendar_first` and `calendar_last`."
    )


def _notes(platform: Platform, contract: Contract, day: date, holds_on: Mapping[str, HoldsByDay]) -> tuple[str, ...]:
    """Return which inputs count with the last good content of held days."""
    notes: list[str] = []
    for read in contract.inputs:
        holds = holds_on.get(read.table, {})
        if held := days_in(sorted(holds), ranges_read(read.window, day, platform.calendar)):
            more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
            notes.append(
                f"reads {read.table} with its last good content of {held[0]}{more} (held: {holds[held[0]].reason})"
            )
    return tuple(notes)
