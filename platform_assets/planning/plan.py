"""Plan which days of which tables to recompute, in which order, why, and at what cost.

A plan is explained or executed from the same value. During execution days may be struck, because their inputs came out
unchanged; none are added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from statistics import median
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
from platform_assets.planning.windows import day_range, newest, union_reached
from platform_assets.records.history import DayMark

_BRIEF_ROWS, _BRIEF_BYTES = 200_000, 1 << 20
_NEWEST = 100
"""Days that the median is taken of: what tables took years ago says little of today."""


@dataclass(frozen=True)
class Estimate:
    """Estimated rows, bytes and seconds of a step.

    Args:
        bytes: written.
        seconds: wall time.
    """

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.rows + other.rows, self.bytes + other.bytes, self.seconds + other.seconds)


def written(days: Collection[date], known: Mapping[date, DayMark]) -> Estimate | None:
    """Return the probable size of some days, without the time; None if the table has no day."""
    recent = newest(known, _NEWEST)
    if not days or not recent:
        return None
    usual = DayMark(
        recent[0].day,
        rows=round(median(mark.rows for mark in recent)),
        bytes=round(median(mark.bytes for mark in recent)),
    )
    sizes = [known.get(day, usual) for day in days]
    return Estimate(rows=sum(mark.rows for mark in sizes), bytes=sum(mark.bytes for mark in sizes))


def estimate(days: Collection[date], known: Mapping[date, DayMark]) -> Estimate | None:
    """Estimate the cost of some days: an existing day keeps its size, others are like the median day.

    Seconds are those of a median day for each, and once the fixed cost of the smallest publication among them: a job
    costs something before its first day. The median is that of the newest hundred.

    Returns:
        None where none of these days was timed, so that nothing can be said.
    """
    size = written(days, known)
    timed = [mark for mark in newest(known, _NEWEST) if mark.seconds > 0]
    if size is None or not timed:
        return None
    per_day = median(mark.seconds for mark in timed)
    return replace(size, seconds=len(days) * per_day + _before_the_first_day(timed, per_day))


def total(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Return the sum of estimates; None if one of them is unknown."""
    summed = Estimate()
    for part in estimates:
        if part is None:
            return None
        summed += part
    return summed


def is_brief(written: Estimate | None, taken_bytes: int) -> bool:
    """Return whether work ends before a JVM has compiled it well: few rows to write, little to ingest.

    Args:
        written: by all planned steps; None if a table was never computed, so that nothing is known.
        taken_bytes: bytes of files whose days join the plan.
    """
    return written is not None and written.rows <= _BRIEF_ROWS and taken_bytes <= _BRIEF_BYTES


def _before_the_first_day(timed: Iterable[DayMark], per_day: float) -> float:
    by_release: defaultdict[int, list[float]] = defaultdict(list)
    for mark in timed:
        by_release[mark.release].append(mark.seconds)
    smallest = min(by_release.values(), key=len)
    return max(sum(smallest) - len(smallest) * per_day, 0.0)


_BY_VERSION: frozenset[Reason] = frozenset({"code", "configuration"})


@dataclass(frozen=True)
class Intake:
    """Waiting work of a raw table. The days that its files touch are known after ingestion.

    Args:
        bytes: of all of them.
        quiet: days to load as empty, because no rows were expected.
        due: days that have come and have waiting rows.
    """

    table: str
    files: int = 0
    bytes: int = 0
    quiet: tuple[date, ...] = ()
    due: tuple[date, ...] = ()


@dataclass(frozen=True)
class PlannedStep:
    """A table with the days to recompute."""

    table: str
    reasons: Mapping[date, Reasons]
    estimate: Estimate | None = None

    @property
    def days(self) -> tuple[date, ...]:
        """Return its days, oldest first."""
        return tuple(self.reasons)

    @cached_property
    def by_reasons(self) -> dict[Reasons, tuple[date, ...]]:
        """Return the days by their reasons."""
        by_reasons: defaultdict[Reasons, list[date]] = defaultdict(list)
        for day, reasons in self.reasons.items():
            by_reasons[reasons].append(day)
        return {reasons: tuple(days) for reasons, days in by_reasons.items()}


class BlockedDay(NamedTuple):
    """A day that should be recomputed and cannot be."""

    state: Blocked
    reasons: Reasons


@dataclass(frozen=True)
class Plan:
    """What a refresh would do.

    Args:
        intakes: deliveries that raw tables ingest first; the days that these touch join the steps.
        waiting: days that wait for a person and were not requested: stale only through code or configuration, or of a
            table that no automatic run touches until it follows its contract. For a person's request, only protected
            days, which wait for a plan file.
        blocked: stale, requested or reached days that cannot be computed because an input day is missing or not good
            and no earlier step changes that, by table.
        by_people: tables that the plan leaves alone, because one must follow its contract and was not requested.
        bereft: existing days that read a missing day, as after a rollback to before it was ever computed, by table.
            They stay unchanged until it is there.
        moment: moment of the plan. At any other moment it must be made again, as after ingestion.
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
        """Return the sum of the estimates of all steps; None if one of them is unknown."""
        return total(step.estimate for step in self.steps)

    @property
    def days(self) -> int:
        """Return how many table-days are recomputed."""
        return sum(len(step.days) for step in self.steps)

    @property
    def stale(self) -> dict[str, tuple[date, ...]]:
        """Return the days that are or will be stale, computable or not, by table."""
        to_do = {step.table: set(step.days) for step in self.steps}
        tables = (*to_do, *(self.blocked.keys() - to_do.keys()))
        return {table: tuple(sorted({*to_do.get(table, ()), *self.blocked.get(table, ())})) for table in tables}

    @property
    def is_empty(self) -> bool:
        """Return whether nothing can be done."""
        return not self.intakes and not self.steps and not self.tries


def make_plan(
    catalogue: Catalogue,
    tables: TableStates,
    states: States,
    past: Past,
    request: Request = AUTOMATIC,
    intakes: Collection[Intake] = (),
) -> Plan:
    """Plan the steps that bring the request up to date: all stale days, and all days that they reach.

    Args:
        states: states of every day of every table with a transform, from `day_states`.
    """
    wanted = wanted_days(catalogue, request, tables.calendar)
    by_people: Collection[str] = () if request.by_person else left_to_people(catalogue, tables)
    planned = _Planned(catalogue, tables, states, past, request)
    for contract in catalogue:
        if contract.inputs and (days := wanted.get(contract.name)):
            planned.add(contract, days, is_left=contract.name in by_people)
    takes = tuple(intake for intake in intakes if wanted.get(intake.table) and intake.table not in by_people)
    steps, waiting = tuple(planned.steps.values()), tuple(planned.waiting)
    return Plan(takes, steps, waiting, planned.blocked, tuple(sorted(by_people)), planned.bereft)


class _Planned:
    """The plan so far, each table after its inputs."""

    def __init__(self, catalogue: Catalogue, tables: TableStates, states: States, past: Past, request: Request) -> None:
        self._catalogue, self._tables, self._states = catalogue, tables, states
        self._past, self._request = past, request
        self.steps: dict[str, PlannedStep] = {}
        self.waiting: list[PlannedStep] = []
        self.blocked: dict[str, dict[date, BlockedDay]] = {}
        self.bereft: dict[str, dict[date, Blocked]] = {}

    def add(self, contract: Contract, days: Collection[date], *, is_left: bool) -> None:
        """Plan the days of a table."""
        table, known = contract.name, self._tables.marks.get(contract.name, {})
        of_days = {day: s for day, s in not_up_to_date(self._states.get(table, {})).items() if day in days}
        kept = self._kept(contract, of_days)
        if lost := {day: why for day, why in kept.items() if not why.is_there and day in known}:
            self.bereft[table] = lost
        reasons_of = self._through_inputs(contract, days, of_days)
        by_version = through_version({day: unblocked(state) for day, state in of_days.items()})
        needs_all = self._tables.changing.get(table) == "all days"
        if needs_all:  # those refused before too: the step says which
            by_version |= {day: ("configuration",) for day, state in of_days.items() if isinstance(state, Held)}
        if is_left:
            every = sorted({*reasons_of, *by_version})
            self._wait(table, {day: ordered({*reasons_of[day], *by_version.get(day, ())}) for day in every})
            return
        asked = self._request.named_days(table, days)
        needed = {day for day in asked if self._request.force or (day not in known and day not in reasons_of)}
        if needs_all:
            needed |= by_version.keys()
        for day in asked if self._request.force else ():
            reasons_of[day].add("asked for")
        for day, reasons in by_version.items():
            if self._takes(table, day) or reasons_of[day]:
                reasons_of[day].update(reasons)
        if by := self._tables.stopped.get(table):
            stale = [day for day, why in reasons_of.items() if why]
            kept = {day: stopped_day(by, day) for day in (*needed, *stale)} | kept
        why_not = {day: state for day, state in kept.items() if day in needed or (state.is_there and reasons_of[day])}
        if why_not:
            new = never_computed(why_not, known)
            self.blocked[table] = {
                day: BlockedDay(at_root(state, self._above), ordered({*reasons_of[day], *new.get(day, ())}))
                for day, state in why_not.items()
            }
        by_day = {day: ordered(reasons_of[day]) for day in sorted(reasons_of) if reasons_of[day]}
        if to_do := {day: why for day, why in by_day.items() if day not in kept}:
            self.steps[table] = PlannedStep(table, to_do, estimate(to_do, known))
        self._wait(table, {day: by_version[day] for day in sorted(by_version.keys() - by_day.keys())})

    def _wait(self, table: str, reasons: Mapping[date, Reasons]) -> None:
        if reasons:
            known = self._tables.marks.get(table, {})
            self.waiting.append(PlannedStep(table, reasons, estimate(reasons, known)))

    def _takes(self, table: str, day: date) -> bool:
        """Return whether a day that is stale by code or configuration alone is computed."""
        if not self._request.by_person or self._request.leaves(table, day):
            return False
        is_there = day in self._tables.marks.get(table, {}) and day not in self._request.protected_too
        return not (is_there and why_protected(self._catalogue.protecting(table), day))

    def _above(self, table: str, day: date) -> DayState | None:
        known = self.blocked.get(table, {}).get(day)
        return known.state if known else self._states.get(table, {}).get(day)

    def _kept(self, contract: Contract, states: Mapping[date, DayState]) -> dict[date, Blocked]:
        """Return the days that stay blocked or held after the steps before, and why."""
        tables, kept = self._tables, dict[date, Blocked]()
        blocked = {day: state for day, state in states.items() if isinstance(state, Blocked)}
        to_come = {
            read.table: frozenset(self.steps[read.table].days if read.table in self.steps else ())
            for read in contract.inputs
        }
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
        for day, of_day in states.items():
            if isinstance(of_day, Held) and of_day.hold.lasts:
                kept[day] = Blocked(contract.name, day, of_day.hold, is_there=True)
        return kept

    def _through_inputs(
        self, contract: Contract, days: Collection[date], states: Mapping[date, DayState]
    ) -> defaultdict[date, set[Reason]]:
        """Return why days are stale through data, now or after the steps before, also uncomputable ones."""
        reasons_of: defaultdict[date, set[Reason]] = defaultdict(set)
        taken = stale_through_data({day: unblocked(state) for day, state in states.items()})
        for day, reasons in through_data(contract, taken, self._tables, self._past).items():
            reasons_of[day].update(reasons)
        reached: defaultdict[date, set[Reason]] = defaultdict(set)
        for read in contract.inputs:
            if read.table in self.steps:
                for span in union_reached(read.window, self.steps[read.table].days, self._tables.calendar):
                    for day in day_range(*span):
                        reached[day].add(through_input(read))
        possible = {day for day in reached if day in days and day not in taken}
        new = never_computed(possible, self._tables.marks.get(contract.name, {}))
        for day in possible:
            reasons_of[day].update(new.get(day, reached[day]))
        return reasons_of


def reason_counts(steps: Iterable[PlannedStep]) -> dict[Reason, int]:
    """Return how many days have each reason; a day with two reasons counts for both."""
    counts: defaultdict[Reason, int] = defaultdict(int)
    for step in steps:
        for reasons, days in step.by_reasons.items():
            for reason in reasons:
                counts[reason] += len(days)
    return {reason: counts[reason] for reason in ordered(counts.keys())}


class LeftToDo(NamedTuple):
    """The rest of a planned step after the steps before it.

    Args:
        days: days that still need work, or cannot be computed after all, which the step then reports.
        struck: days whose inputs came out unchanged.
    """

    days: tuple[date, ...]
    struck: tuple[date, ...]


def left_to_do(step: PlannedStep, states: Mapping[date, DayState], request: Request) -> LeftToDo:
    """Return the rest of a planned step after the steps before it."""
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
    """Return whether the step of a planned day is to compute it, or to report what blocks it."""
    match state:
        case UpToDate():
            return False
        case Missing():
            return True
        case Stale():
            return state.by_data or request.by_person
        case Held():  # reached, and its input came out unchanged refused: nothing new; else it was refused since
            return not _BY_VERSION.isdisjoint(reasons)
        case Blocked(is_there=False):
            return True
        case Blocked():
            return state.otherwise is not None and (state.otherwise.by_data or request.by_person)
