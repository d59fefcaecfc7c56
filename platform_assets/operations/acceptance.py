"""Accepting what a gate found on held days: a person has looked, and it is true."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import cast

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.errors import PlatformError
from platform_assets.planning.day_states import Blocked, DayState, Held
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import Step
from platform_assets.quality.findings import ACCEPTABLE, Check
from platform_assets.records.code_version import TiedTo
from platform_assets.records.history import Hold, hold_of_each_day

_SHOWN = 5


@dataclass(frozen=True)
class Acceptance:
    """What is going to be accepted.

    Args:
        holds: all that stand on every day of it, by day, those included that are held only because records tie them to
            one of them.
        made_from: the fingerprint of each of the days: what was looked at, and is accepted.
    """

    table: str
    holds: Mapping[date, tuple[Hold, ...]]
    made_from: Mapping[date, str]

    @property
    def checks(self) -> frozenset[Check]:
        """Return the checks whose findings no longer count on these days."""
        every = (hold for standing in self.holds.values() for hold in standing)
        return frozenset(cast("Check", hold.gate) for hold in every if not isinstance(hold.refused, TiedTo))

    @property
    def step(self) -> Step:
        """Return the days to compute with these checks accepted."""
        return Step(self.table, tuple(self.holds))


def acceptance(platform: Platform, table: str, days: Collection[date]) -> Acceptance:
    """Return what accepting some days would publish; nothing is done.

    Raises:
        PlatformError: a circuit stops the table, or a day is not held, or by what cannot be accepted.
    """
    contract, snapshot = platform.catalogue[table], LakeSnapshot.now(platform)
    holds = list(snapshot.holds_of(contract.name))
    if not contract.inputs:
        raise PlatformError(
            f"{contract.name} holds what was delivered, so no gate holds a day of it.",
            "Name a silver or gold table; `platform-assets status` shows the days that are held.",
        )
    if stops := snapshot.stopped.get(contract.name):
        raise PlatformError(
            f"Nothing was accepted: {stops.reason}.", f"{stops.overruled_by} says how to close it; accept then."
        )
    held = {hold.day for hold in holds}
    tables, states = states_around(snapshot, contract, {*days, *held})
    made_from = fingerprints(contract, held, tables.digests, tables.calendar, tables.views)
    return chosen(contract.name, days, holds, states, made_from)


def chosen(
    table: str,
    days: Collection[date],
    holds: Collection[Hold],
    states: Mapping[date, DayState],
    made_from: Mapping[date, str],
) -> Acceptance:
    """Return the days that are accepted together: those asked for, and those that records tie to them.

    Args:
        holds: of the table, oldest first.
        made_from: the fingerprint that each held day would get now.
    """
    standing = {day: hold for (_, day), hold in hold_of_each_day(holds).items()}
    now = {day: state.hold for day, state in states.items() if isinstance(state, Held)}
    taken: dict[date, tuple[Hold, ...]] = {}
    refused: dict[date, str] = {}
    left = sorted(days)
    while left:
        day = left.pop(0)
        if day in taken or day in refused:
            continue
        if day not in standing:
            refused[day] = "is not held"
        elif now.get(day, standing[day]).is_of_good_content:  # a gate may have refused it since
            refused[day] = "was rolled back by a person, and no gate holds it"
        elif isinstance(state := states.get(day), Blocked):
            refused[day] = f"is held, and cannot be computed now: it waits for {state.table} {state.day}"
        elif day not in now:
            refused[day] = "is held, but would now become something that no gate has seen: `refresh` tries it again"
        elif never := [
            hold
            for hold in _of_the_same(now[day], holds)
            if not isinstance(hold.refused, TiedTo) and hold.gate not in ACCEPTABLE
        ]:
            refused[day] = f"is held by {never[0].gate}, and what that finds cannot be accepted: {never[0].reason}"
        else:
            hold, taken[day] = now[day], _of_the_same(now[day], holds)
            left += [hold.refused.day] if isinstance(hold.refused, TiedTo) else []
            left += [other for other, tied in now.items() if tied.refused == TiedTo(day)]
    if refused:
        lines = [f"{table} {day} {why}" for day, why in sorted(refused.items())]
        more = f"; and {len(lines) - _SHOWN:,} more days" if len(lines) > _SHOWN else ""
        raise PlatformError(
            f"Nothing was accepted: {'; '.join(lines[:_SHOWN])}{more}.",
            f"Only findings of {' and '.join(sorted(ACCEPTABLE))} can be accepted, on days that they hold now; "
            f"`platform-assets status` shows these, docs/on-call.md says what to do about others.",
        )
    return Acceptance(table, dict(sorted(taken.items())), {day: made_from[day] for day in taken})


def _of_the_same(hold: Hold, holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Return all that refuse just the same of a day: one gate may have found something once another was accepted."""
    return tuple(other for other in holds if (other.day, other.refused) == (hold.day, hold.refused))
