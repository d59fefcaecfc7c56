"""Decide the state of a day: up to date, stale and why, held, blocked, or missing.

`status`, `why`, plans, sensors and steps call the same function, so they agree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import cast

from platform_assets.contracts import Catalogue, Contract, Input, Span
from platform_assets.planning.configuration import Need
from platform_assets.planning.fingerprints import Digests, Views, fingerprints
from platform_assets.planning.windows import Calendar, DaysOnDemand, not_there, ranges_read
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import DayMark, Hold, Marks, hold_of_each_day


@dataclass(frozen=True, slots=True)
class UpToDate:
    """Recomputing the day would not change it."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A day of a raw table that was never loaded, or one outside the calendar."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Recomputing the day would change it, and it can be computed.

    Args:
        fingerprint: fingerprint that it would get; empty if an input is missing.
        by_data: its inputs changed, or it was never computed. Such days need no person.
        by_code: it was computed by other code than today's, or by such code and a person restored it.
        by_configuration: the same for the contract's configuration.
    """

    fingerprint: str
    by_data: bool = False
    by_code: bool = False
    by_configuration: bool = False

    @property
    def by_version(self) -> bool:
        """Return whether the day is stale through code or configuration, which needs a person."""
        return self.by_code or self.by_configuration


@dataclass(frozen=True, slots=True)
class Held:
    """The day would be refused again: it is left alone until its input or code changes, or the hold is lifted."""

    hold: Hold


@dataclass(frozen=True, slots=True)
class Blocked:
    """The day cannot be computed, because an input is missing or not good.

    Args:
        day: its input day that is missing or held.
        hold: the hold; None if the input was never loaded and nothing was refused.
        is_there: whether the input day has content, the last good one.
        otherwise: its state if only that input were there; None if it would be up to date.
    """

    table: str
    day: date
    hold: Hold | None = None
    is_there: bool = False
    otherwise: Stale | None = None


DayState = UpToDate | Missing | Stale | Held | Blocked
States = Mapping[str, Mapping[date, DayState]]
"""The state of days, by table."""

_UP_TO_DATE, _MISSING = UpToDate(), Missing()


def in_force(holds: Iterable[Hold], states: States) -> tuple[Hold, ...]:
    """Return the holds that affect readers now, in their order.

    A hold of an up-to-date day refuses a result that would not be computed now. It stays in case that result comes
    back.
    """
    return tuple(hold for hold in holds if not isinstance(states.get(hold.table, {}).get(hold.day), UpToDate))


def day_states(
    contract: Contract,
    days: Collection[date],
    tables: TableStates,
    *,
    forced: Collection[date] = (),
    accept: Collection[str] = (),
) -> dict[date, DayState]:
    """Return the state of some days of a table, oldest first.

    Args:
        forced: days to compute whatever their state; only their inputs, or a lasting rollback, can block them.
    """
    have = tables.marks.get(contract.name, {})
    if not contract.inputs:
        return {day: _UP_TO_DATE if day in have else _MISSING for day in sorted(days)}
    holds = tables.holds.get(contract.name, ())
    asked = {*days, *(hold.refused.day for hold in holds if isinstance(hold.refused, TiedTo))}
    now = fingerprints(contract, asked, tables.digests, tables.calendar, tables.views)
    refusals = _Refusals(holds, now, tables.versions.get(contract.name), accept)
    blocked = _blocked(contract, days, now, tables)
    differs = _versions(contract, days, tables)
    states: dict[date, DayState] = {}
    for day in sorted(days):
        state = _alone(day, now.get(day, ""), have.get(day), refusals, differs, is_forced=day in forced)
        if day in blocked:
            state = replace(blocked[day], otherwise=state if isinstance(state, Stale) else None)
        elif day not in now:
            state = _MISSING
        states[day] = state
    if by := tables.stopped.get(contract.name):
        states |= {day: stopped_day(by, day, state) for day, state in states.items() if isinstance(state, Stale)}
    return states


def stopped_day(by: Hold, day: date, state: Stale | None = None) -> Blocked:
    """Return the state of a day that an open circuit stops.

    Args:
        day: a day of the table, or of a table computed from it.
    """
    return Blocked(by.table, day, replace(by, day=day), is_there=True, otherwise=state)


def not_up_to_date(states: Mapping[date, DayState]) -> dict[date, DayState]:
    """Return the few days of a long history that are not up to date."""
    return {day: state for day, state in states.items() if state is not _UP_TO_DATE}


def stale_through_data(states: Mapping[date, DayState]) -> dict[date, str]:
    """Return the days that need no person to be computed, with their new fingerprints."""
    return {day: state.fingerprint for day, state in states.items() if isinstance(state, Stale) and state.by_data}


def unblocked(state: DayState) -> DayState:
    """Return a day's state if all its inputs were there."""
    return state.otherwise or _UP_TO_DATE if isinstance(state, Blocked) else state


def at_root(state: Blocked, above: Callable[[str, date], DayState | None]) -> Blocked:
    """Return a blocked day's state with what blocks its missing input; `above` has the state of that."""
    while state.hold is None and isinstance(its_own := above(state.table, state.day), Blocked):
        state = replace(state, table=its_own.table, day=its_own.day, hold=its_own.hold)
    return state


def fingerprint_of(state: DayState) -> str:
    """Return a stale day's new fingerprint; empty for any other day."""
    return state.fingerprint if isinstance(state, Stale) else ""


def same_input(contract: Contract, days: Collection[date], tables: TableStates) -> tuple[date, ...]:
    """Return the days whose inputs are unchanged since they were computed, regardless of code, oldest first."""
    now = fingerprints(contract, days, tables.digests, tables.calendar, tables.views)
    have = tables.marks.get(contract.name, {})
    return tuple(day for day in sorted(now) if day in have and have[day].fingerprint == now[day])


def left_to_people(catalogue: Catalogue, tables: TableStates) -> frozenset[str]:
    """Return tables that no sensor or schedule touches: those that must follow their contract, and their readers.

    A reader of such a table would read other columns than it was written for. Raw tables add columns by themselves,
    with the next delivery.
    """
    own = {name for name, need in tables.changing.items() if catalogue[name].inputs or need != "any days"}
    return frozenset(own | {c.name for c in catalogue if any(read.table in own for read in c.inputs)})


class _Refusals:
    """Find held days that would be refused again, and those that a person may try with other code."""

    def __init__(
        self, holds: Iterable[Hold], now: Mapping[date, str], today: Version | None, accept: Collection[str]
    ) -> None:
        self.refused: dict[date, Hold] = {}
        self.by_people: defaultdict[date, set[tuple[bool, bool]]] = defaultdict(set)
        self.held: set[date] = set()
        self.by_gates: set[date] = set()
        tied: list[tuple[Hold, date]] = []
        unknown: set[date] = set()
        lasting: dict[date, Hold] = {}
        for hold in holds:
            self.held.add(hold.day)
            if not hold.is_of_good_content:
                self.by_gates.add(hold.day)
            match hold.refused:
                case TiedTo(root):
                    tied.append((hold, root))
                case Attempt() if hold.lasts:
                    lasting[hold.day] = hold
                case Attempt(fingerprint, tried) if hold.gate not in accept:
                    if hold.day not in now:
                        unknown.add(hold.day)
                    if now.get(hold.day, fingerprint) == fingerprint:
                        if tried in (Version(), today):
                            self.refused[hold.day] = hold
                        elif hold.is_of_good_content and today:  # code alone undoes no rollback
                            self.by_people[hold.day].add(tried.differs(today))
        self.refused |= lasting  # regardless of gates
        # Left alone like the day that it is tied to, which may be tied to another one; also if that day is unknown.
        while taken := [each for each in tied if each[1] in self.refused or each[1] in unknown]:
            self.refused = {hold.day: hold for hold, _ in taken} | self.refused
            tied = [each for each in tied if each not in taken]
        while taken := [each for each in tied if each[1] in self.by_people]:
            for hold, root in taken:
                self.by_people[hold.day] |= self.by_people[root]
            tied = [each for each in tied if each not in taken]


_Differs = Mapping[tuple[str, str], tuple[bool, bool]]
"""Whether code and configuration are others than today's, by those that made days."""


def _alone(
    day: date, fingerprint: str, mark: DayMark | None, refusals: _Refusals, differs: _Differs, *, is_forced: bool
) -> DayState:
    """Return the state of an unblocked day."""
    if (hold := refusals.refused.get(day)) and (hold.lasts or not is_forced):
        return Held(hold)
    code, configuration = differs[mark.code_version, mark.configuration] if mark else (False, False)
    is_same = mark is not None and mark.fingerprint == fingerprint
    if tried := refusals.by_people.get(day):
        by_data = False
        if not is_same or code or configuration:  # else it was made again by today's code since
            code, configuration = (any(which) for which in zip((code, configuration), *tried, strict=True))
    else:
        # Computing a held day whose input came back lifts its hold; but a change of code alone undoes no rollback.
        lifts = day in (refusals.by_gates if code or configuration else refusals.held)
        by_data = bool(fingerprint) and (not is_same or lifts)
    if by_data or code or configuration or is_forced:
        return Stale(fingerprint, by_data, code, configuration)
    return _UP_TO_DATE


def _versions(contract: Contract, days: Collection[date], tables: TableStates) -> _Differs:
    today, changing = tables.versions.get(contract.name), contract.name in tables.changing
    have = tables.marks.get(contract.name, {})
    # Few versions made all the days: compare each once.
    made = {(mark.code_version, mark.configuration) for mark in map(have.get, days) if mark}
    differs: dict[tuple[str, str], tuple[bool, bool]] = {}
    for which in made:
        code, configuration = Version(*which).differs(today) if today else (False, False)
        # None of its days has today's columns, whatever their records say.
        differs[which] = code, configuration or changing
    return differs


def _blocked(
    contract: Contract, days: Collection[date], now: Mapping[date, str], tables: TableStates
) -> dict[date, Blocked]:
    blocked: dict[date, Blocked] = {}
    lacking = [day for day in days if day not in now]
    missing = {read.table: missing_days(read.table, tables) for read in contract.inputs} if lacking else {}
    for day in {day for read in contract.inputs for day in tables.held.get(read.table, ())} & set(days):
        if held := held_input(contract.inputs, day, tables):
            blocked[day] = Blocked(held.table, day, held, is_there=True)
    for day in lacking:  # a missing input blocks a day for longer than a held one
        if (needed := missing_input(contract.inputs, day, missing, tables.calendar)) is not None:
            table, its_day = needed
            blocked[day] = Blocked(table, its_day, tables.held.get(table, {}).get(its_day))
    return blocked


@dataclass(frozen=True)
class TableStates:
    """The state of tables at one moment, which determines the states of their days.

    Args:
        versions: code version and configuration of each table with a transform today; without them, nothing is stale
            through that.
        changing: tables whose columns or keys differ from their contract today, and what each needs to follow it.
        contents: for every table that is read as of a day, one hash of its days' content.
        stopped: tables that cannot be published, with the open circuit that stops them, their own or an input's.
    """

    marks: Marks
    holds: Mapping[str, Sequence[Hold]]
    calendar: Calendar
    versions: Mapping[str, Version] = field(default_factory=dict)
    views: Views = field(default_factory=dict)
    changing: Mapping[str, Need] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, Hold] = field(default_factory=dict)

    @cached_property
    def digests(self) -> Digests:
        """Return the digest of every loaded day, by table."""
        return {table: _digests(marks) for table, marks in self.marks.items()}

    @cached_property
    def held(self) -> Mapping[str, Mapping[date, Hold]]:
        """Return for every held day the hold that affects readers, by table."""
        return {
            table: {day: hold for (_, day), hold in hold_of_each_day(holds).items()}
            for table, holds in self.holds.items()
        }


def missing_days(table: str, tables: TableStates, and_these: Collection[date] = ()) -> list[date]:
    """Return the missing days of a table, oldest first; some days count as present."""
    return [day for day in not_there(tables.marks.get(table, {}), tables.calendar) if day not in and_these]


def _digests(marks: Mapping[date, DayMark]) -> Mapping[date, str]:
    if isinstance(marks, DaysOnDemand):
        return cast("DaysOnDemand[DayMark]", marks).mapped(lambda mark: mark.digest)
    return {day: mark.digest for day, mark in marks.items()}


def missing_input(
    inputs: Iterable[Input], day: date, missing: Mapping[str, Sequence[date]], calendar: Calendar
) -> tuple[str, date] | None:
    """Return the first missing input day of a day."""
    for read in inputs:
        for start, end in ranges_read(read.window, day, calendar):
            at = bisect_left(missing[read.table], start)
            if at < len(missing[read.table]) and (needed := missing[read.table][at]) <= end:
                return read.table, needed
    return None


def held_input(
    inputs: Iterable[Input], day: date, tables: TableStates, made: Mapping[str, Collection[date]] = MappingProxyType({})
) -> Hold | None:
    """Return the hold of the first input day of the same date that is not good, although it has content."""
    for read in inputs:
        hold = tables.held.get(read.table, {}).get(day)
        is_not_good = hold is not None and not hold.is_of_good_content and day in tables.marks.get(read.table, {})
        if read.window == Span(0, 0) and is_not_good and day not in made.get(read.table, ()):
            return hold
    return None
