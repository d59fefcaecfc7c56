"""The plan: exactly the days that are to be recomputed, of which tables, in which order, and why.

A plan is explained or executed from the same value. At execution days may be struck, because what they read came out as
it was; none are added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import NamedTuple

from platform_assets.contracts import Catalogue, Contract
from platform_assets.contracts.calendar import why_protected
from platform_assets.planning.circuit import Try
from platform_assets.planning.day_states import (
    Blocked,
    DayState,
    Held,
    Missing,
    Stale,
    States,
    TableStates,
    UpToDate,
    at_root,
    held_input,
    left_to_people,
    missing_days,
    missing_input,
    not_up_to_date,
    stale_through_data,
    stopped_day,
    unblocked,
)
from platform_assets.planning.estimates import Estimate, estimate, total
from platform_assets.planning.reasons import (
    Past,
    Reason,
    Reasons,
    never_computed,
    ordered,
    through_data,
    through_input,
    through_version,
)
from platform_assets.planning.selection import AUTOMATIC, Request, wanted_days
from platform_assets.planning.windows import day_range, union_reached

_BY_VERSION: frozenset[Reason] = frozenset({"code", "configuration"})


@dataclass(frozen=True)
class Intake:
    """What waits for a raw table. Which days its files touch is known once they are taken.

    Args:
        bytes: of all of them.
        quiet: days to load as empty, because nothing was to be expected on them.
        due: days that have come and of which rows wait that arrived too far ahead.
    """

    table: str
    files: int = 0
    bytes: int = 0
    quiet: tuple[date, ...] = ()
    due: tuple[date, ...] = ()


@dataclass(frozen=True)
class PlannedStep:
    """One table with the days to recompute.

    Args:
        estimate: of what it takes; None where nothing is known of the table yet.
    """

    table: str
    reasons: Mapping[date, Reasons]
    estimate: Estimate | None = None

    @property
    def days(self) -> tuple[date, ...]:
        """Oldest first."""
        return tuple(self.reasons)

    @cached_property
    def by_reasons(self) -> dict[Reasons, tuple[date, ...]]:
        """The days that have the same reasons."""
        by_reasons: defaultdict[Reasons, list[date]] = defaultdict(list)
        for day, reasons in self.reasons.items():
            by_reasons[reasons].append(day)
        return {reasons: tuple(days) for reasons, days in by_reasons.items()}


class BlockedDay(NamedTuple):
    """A day that is to be recomputed and cannot be."""

    state: Blocked
    reasons: Reasons


@dataclass(frozen=True)
class Plan:
    """What a refresh would do.

    Args:
        intakes: what raw tables take first; the days that this touches join the steps.
        waiting: days that wait for a person and that nobody asked for: stale only through code or configuration, or of
            a table that no run touches by itself until it follows its contract. For a person who asks, only protected
            days, which wait for a plan file.
        blocked: days that are stale or asked for, or reached by a step, and cannot be computed because an input day is
            not there or not good and no step before makes it so, by table.
        by_people: tables that the plan leaves alone, because one of them has to follow its contract and nobody asked.
        bereft: days that are there and read one that is not, as after a rollback to before it was ever computed, by
            table. They stay as they are until it is there.
        tries: tables with an open circuit that a run tries now.
        moment: what was looked at. On anything else the plan has to be made anew, as after raw tables took something.
    """

    intakes: tuple[Intake, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    waiting: tuple[PlannedStep, ...] = ()
    blocked: Mapping[str, Mapping[date, BlockedDay]] = field(default_factory=dict)
    by_people: tuple[str, ...] = ()
    bereft: Mapping[str, Mapping[date, Blocked]] = field(default_factory=dict)
    tries: Mapping[str, Try] = field(default_factory=dict)
    moment: str = ""

    @property
    def estimate(self) -> Estimate | None:
        """Add up the estimates of all steps; None if nothing is known of one of them."""
        return total(step.estimate for step in self.steps)

    @property
    def days(self) -> int:
        """Return how many days of tables are recomputed."""
        return sum(len(step.days) for step in self.steps)

    @property
    def stale(self) -> dict[str, tuple[date, ...]]:
        """The days that are not what they would be, or will not be, whether they can be computed or not, by table."""
        to_do = {step.table: set(step.days) for step in self.steps}
        tables = (*to_do, *(self.blocked.keys() - to_do.keys()))
        return {table: tuple(sorted({*to_do.get(table, ()), *self.blocked.get(table, ())})) for table in tables}

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing that can be done."""
        return not self.intakes and not self.steps and not self.tries


def make_plan(
    catalogue: Catalogue,
    tables: TableStates,
    states: States,
    past: Past,
    request: Request = AUTOMATIC,
    intakes: Collection[Intake] = (),
) -> Plan:
    """Plan the steps that bring what is asked for up to date: all stale days, and all days that one of them reaches.

    Args:
        states: of every day of every table with a transform, as `day_states` has them.
    """
    wanted = wanted_days(catalogue, request, tables.calendar)
    by_people: Collection[str] = () if request.by_person else left_to_people(catalogue, tables)
    steps: dict[str, PlannedStep] = {}
    waiting: list[PlannedStep] = []
    blocked: dict[str, dict[date, BlockedDay]] = {}
    bereft: dict[str, dict[date, Blocked]] = {}

    def above(table: str, day: date) -> DayState | None:
        known = blocked.get(table, {}).get(day)
        return known.state if known else states.get(table, {}).get(day)

    for contract in catalogue:
        table, known = contract.name, tables.marks.get(contract.name, {})
        days = wanted.get(table, frozenset())
        if not contract.inputs or not days:
            continue
        of_days = {day: state for day, state in not_up_to_date(states.get(table, {})).items() if day in days}
        kept = _kept_from(contract, of_days, tables, steps)
        put_back = {day: state.hold for day, state in of_days.items() if isinstance(state, Held) and state.hold.lasts}
        kept |= {day: Blocked(table, day, hold, is_there=True) for day, hold in put_back.items()}
        if lost := {day: why for day, why in kept.items() if not why.is_there and day in known}:
            bereft[table] = lost
        reasons_of = _through_inputs(contract, days, tables, of_days, past, steps)
        by_version = through_version({day: unblocked(state) for day, state in of_days.items()})
        needs_all = tables.changing.get(table) == "all days"
        if needs_all:  # those refused before too: the step says which
            by_version |= {day: ("configuration",) for day, state in of_days.items() if isinstance(state, Held)}
        if table in by_people:
            left = {
                day: ordered({*reasons_of[day], *by_version.get(day, ())}) for day in sorted({*reasons_of, *by_version})
            }
            if left:
                waiting.append(PlannedStep(table, left, estimate(left, known)))
            continue
        asked = request.asked(table, days)
        needed = {day for day in asked if request.force or (day not in known and day not in reasons_of)}
        if needs_all:
            needed |= by_version.keys()
        for day in asked if request.force else ():
            reasons_of[day].add("asked for")
        periods = catalogue.protecting(table)
        for day, reasons in by_version.items():
            is_closed = day in known and day not in request.protected_too and why_protected(periods, day)
            if (request.by_person and not is_closed and not request.leaves(table, day)) or reasons_of[day]:
                reasons_of[day].update(reasons)
        if by := tables.stopped.get(table):
            stale = [day for day, why in reasons_of.items() if why]
            kept = {day: stopped_day(by, day) for day in (*needed, *stale)} | kept
        why_not = {day: state for day, state in kept.items() if day in needed or (state.is_there and reasons_of[day])}
        if why_not:
            new = never_computed(why_not, known)
            blocked[table] = {
                day: BlockedDay(at_root(state, above), ordered({*reasons_of[day], *new.get(day, ())}))
                for day, state in why_not.items()
            }
        by_day = {day: ordered(reasons_of[day]) for day in sorted(reasons_of) if reasons_of[day]}
        if to_do := {day: why for day, why in by_day.items() if day not in kept}:
            steps[table] = PlannedStep(table, to_do, estimate(to_do, known))
        if left := {day: by_version[day] for day in sorted(by_version.keys() - by_day.keys())}:
            waiting.append(PlannedStep(table, left, estimate(left, known)))
    takes = tuple(intake for intake in intakes if wanted.get(intake.table) and intake.table not in by_people)
    return Plan(takes, tuple(steps.values()), tuple(waiting), blocked, tuple(sorted(by_people)), bereft)


def reason_counts(steps: Iterable[PlannedStep]) -> dict[Reason, int]:
    """Return how many days have each reason; a day that has two counts for both."""
    counts: defaultdict[Reason, int] = defaultdict(int)
    for step in steps:
        for reasons, days in step.by_reasons.items():
            for reason in reasons:
                counts[reason] += len(days)
    return {reason: counts[reason] for reason in ordered(counts.keys())}


def _kept_from(
    contract: Contract, states: Mapping[date, DayState], tables: TableStates, steps: Mapping[str, PlannedStep]
) -> dict[date, Blocked]:
    """Return the days that are blocked and stay so after the steps before, each with what blocks it."""
    kept: dict[date, Blocked] = {}
    blocked = {day: state for day, state in states.items() if isinstance(state, Blocked)}
    to_come = {read.table: frozenset(steps[read.table].days if read.table in steps else ()) for read in contract.inputs}
    missing: dict[str, list[date]] = {}
    if any(not state.is_there for state in blocked.values()):
        missing = {table: missing_days(table, tables, days) for table, days in to_come.items()}
    for day, state in blocked.items():
        needed = None if state.is_there else missing_input(contract.inputs, day, missing, tables.calendar)
        if needed is not None:
            table, its_day = needed
            kept[day] = replace(state, table=table, day=its_day, hold=tables.held.get(table, {}).get(its_day))
        elif held := held_input(contract.inputs, day, tables, to_come):
            kept[day] = replace(state, table=held.table, day=day, hold=held, is_there=True)
    return kept


def _through_inputs(
    contract: Contract,
    days: Collection[date],
    tables: TableStates,
    states: Mapping[date, DayState],
    past: Past,
    steps: Mapping[str, PlannedStep],
) -> defaultdict[date, set[Reason]]:
    """Return why days are stale through data, now or after the steps before; also days that cannot be computed."""
    reasons_of: defaultdict[date, set[Reason]] = defaultdict(set)
    taken = stale_through_data({day: unblocked(state) for day, state in states.items()})
    for day, reasons in through_data(contract, taken, tables, past).items():
        reasons_of[day].update(reasons)
    reached: defaultdict[date, set[Reason]] = defaultdict(set)
    for read in contract.inputs:
        if read.table in steps:
            for span in union_reached(read.window, steps[read.table].days, tables.calendar):
                for day in day_range(*span):
                    reached[day].add(through_input(read))
    possible = {day for day in reached if day in days and day not in taken}
    new = never_computed(possible, tables.marks.get(contract.name, {}))
    for day in possible:
        reasons_of[day].update(new.get(day, reached[day]))
    return reasons_of


class LeftToDo(NamedTuple):
    """What is left of a planned step once the steps before it are done.

    Args:
        days: that still need work, or cannot be computed after all, which the step then says.
        struck: what they read came out as it was.
    """

    days: tuple[date, ...]
    struck: tuple[date, ...]


def left_to_do(step: PlannedStep, states: Mapping[date, DayState], request: Request) -> LeftToDo:
    """Return what is left of a planned step once the steps before it are done."""
    days: list[date] = []
    struck: list[date] = []
    for day, reasons in step.reasons.items():
        state = states[day]
        if "asked for" in reasons or _is_due(state, reasons, request):
            days.append(day)
        else:
            struck.append(day)
    return LeftToDo(tuple(days), tuple(struck))


def _is_due(state: DayState, reasons: Reasons, request: Request) -> bool:
    """Return whether the step of a planned day is to compute it, or to say what keeps it."""
    match state:
        case UpToDate():
            return False
        case Missing():
            return True
        case Stale():
            return state.by_data or request.by_person
        case Held():  # reached, and its input came out as it was refused: nothing new; else it was refused since
            return not _BY_VERSION.isdisjoint(reasons)
        case Blocked(is_there=False):
            return True
        case Blocked():
            return state.otherwise is not None and (state.otherwise.by_data or request.by_person)
