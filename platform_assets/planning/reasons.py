"""Reasons of stale days, a closed vocabulary of the command line, Dagster and plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from platform_assets.contracts import AsOf, Contract, Input
from platform_assets.planning.day_states import DayState, Stale, TableStates
from platform_assets.planning.fingerprints import View, joined_since, valid_on
from platform_assets.planning.windows import Calendar, days_in, first_and_last, ranges_read

Reason = Literal[
    "never computed",
    "gap",
    "new arrival",
    "correction",
    "moved key",
    "upstream content",
    "reference data",
    "code",
    "configuration",
    "asked for",
]
"""`gap` is a day never computed between days that are; `reference data` an input that is read as of the day."""

REASONS: tuple[Reason, ...] = get_args(Reason)
Reasons = tuple[Reason, ...]
"""All that hold of one day, in the order of the vocabulary."""


_BY_VERSION: Mapping[tuple[bool, bool], Reasons] = {
    (True, False): ("code",),
    (False, True): ("configuration",),
    (True, True): ("code", "configuration"),
}
"""By whether the code, and whether the configuration, is another one."""


class Revision(NamedTuple):
    """A day as one release published it.

    Args:
        tombstones: rows that only mark a key that moved away.
    """

    release: int
    digest: str
    rows: int = 0
    tombstones: int = 0

    @property
    def records(self) -> int:
        """Return the number of rows that a source delivered."""
        return self.rows - self.tombstones


Revisions = Mapping[date, Sequence[Revision]]
"""All that days of one table have been, oldest first."""


@dataclass(frozen=True)
class Past:
    """The past that is needed to explain stale days.

    Args:
        read_at: the release at which a stale day read each of its inputs, by table, day and input.
        revisions: of the days of inputs that changed since the earliest of these, by table; days in order.
        views: views of inputs that are read as of a day, at those releases, by table and release.
    """

    read_at: Mapping[str, Mapping[date, Mapping[str, int]]] = field(default_factory=dict)
    revisions: Mapping[str, Revisions] = field(default_factory=dict)
    views: Mapping[str, Mapping[int, View]] = field(default_factory=dict)


def ordered(reasons: Collection[Reason]) -> Reasons:
    """Return each reason once, in the order of the vocabulary."""
    return tuple(reason for reason in REASONS if reason in reasons)


def leading(reasons: Reasons) -> Reason:
    """Return the reason that stands for all of a day: an event comes before a change of an input day."""
    return next((reason for reason in reasons if reason != "upstream content"), reasons[0])


def never_computed(days: Collection[date], computed: Collection[date]) -> dict[date, Reasons]:
    """Return why uncomputed days are to be computed."""
    never = [day for day in days if day not in computed]
    first, last = first_and_last(computed) if never else (date.max, date.min)
    return {day: ("gap",) if first < day < last else ("never computed",) for day in never}


def through_data(contract: Contract, days: Collection[date], tables: TableStates, past: Past) -> dict[date, Reasons]:
    """Return why days with another fingerprint now are stale.

    Args:
        days: stale through data, or held although their inputs are unchanged, because a change was undone.
    """
    have = tables.marks.get(contract.name, {})
    came_back: Reasons = ("correction",) if contract.layer == "silver" else ("upstream content",)
    return never_computed(days, have) | {
        day: _by_inputs(contract, day, tables, past) or came_back for day in days if day in have
    }


def through_version(states: Mapping[date, DayState]) -> dict[date, Reasons]:
    """Return days that are stale because people changed the code or the configuration."""
    return {
        day: _BY_VERSION[state.by_code, state.by_configuration]
        for day, state in states.items()
        if isinstance(state, Stale) and state.by_version
    }


def changed_days(read: Input, day: date, read_at: int, revisions: Revisions, calendar: Calendar) -> tuple[date, ...]:
    """Return the days of one input that changed since a day read them, oldest first."""
    near = days_in(list(revisions), ranges_read(read.window, day, calendar))
    return tuple(d for d in near if revisions[d] and digest_at(revisions[d], read_at) != revisions[d][-1].digest)


def digest_at(revisions: Sequence[Revision], release: int) -> str | None:
    """Return a day's digest at a release; None if it did not exist."""
    return next((revision.digest for revision in reversed(revisions) if revision.release <= release), None)


def what_happened(revisions: Sequence[Revision], read_at: int) -> frozenset[Reason]:
    """Return why a raw day changed since a release: rows came, or a key moved away."""
    reasons: set[Reason] = set()
    empty = Revision(-1, "")
    before = [revision for revision in revisions if revision.release <= read_at][-1:] or [empty]
    since = [revision for revision in revisions if revision.release > read_at]
    for then, now in pairwise([*before, *since]):
        if now.tombstones > then.tombstones:
            reasons.add("moved key")
        if now.records != then.records:
            reasons.add("correction" if then.records else "new arrival")
    return frozenset(reasons or {"correction"})


def through_input(read: Input) -> Reason:
    """Return the reason for a change of an input other than raw."""
    return "reference data" if isinstance(read.window, AsOf) else "upstream content"


def _by_inputs(contract: Contract, day: date, tables: TableStates, past: Past) -> Reasons:
    read_at = past.read_at.get(contract.name, {}).get(day, {})
    reasons: set[Reason] = set()
    for read in contract.inputs:
        at, revisions = read_at.get(read.table, -1), past.revisions.get(read.table, {})
        if isinstance(read.window, AsOf):
            then, now = past.views.get(read.table, {}).get(at, {}), tables.views.get(read.table, {})
            since = {day: joined_since(contract, day, tables.calendar)}
            if valid_on(then, since) != valid_on(now, since):
                reasons.add("reference data")
            continue
        for changed in changed_days(read, day, at, revisions, tables.calendar)[:1]:
            reasons |= what_happened(revisions[changed], at) if read.table.startswith("raw.") else {through_input(read)}
    return ordered(reasons)
