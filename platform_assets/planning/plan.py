"""The plan: exactly the days that are to be recomputed, of which tables, in which order, and why.

A plan is explained or executed from the same value. At execution days may be struck, because what they read came out as
it was; none are added.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from platform_assets.contracts import Catalogue, Contract, Input
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
from platform_assets.planning.standing import Stale, Standing
from platform_assets.planning.windows import Calendar, day_range, days_read, union_reached, union_read


@dataclass(frozen=True)
class Request:
    """What somebody wants to be brought up to date.

    Args:
        tables: these and what they are made from; all by default.
        days: of these tables, with the days that they are made from; all by default.
        by_person: days stale only through code or configuration are taken as well.
        force: the days asked for are recomputed whatever their state.
    """

    tables: frozenset[str] = frozenset()
    days: frozenset[date] | None = None
    by_person: bool = False
    force: bool = False


AUTOMATIC = Request()
"""What sensors and schedules ask for: everything that is stale through data."""

BY_PERSON = Request(by_person=True)
"""What a person asks for who names nothing: everything that is stale."""


@dataclass(frozen=True)
class Intake:
    """What waits for a raw table. Which days its files touch is known once they are taken.

    Args:
        table: the raw table.
        files: how many.
        bytes: of all of them.
        quiet: days to load as empty, because nothing was to be expected on them.
    """

    table: str
    files: int = 0
    bytes: int = 0
    quiet: tuple[date, ...] = ()


@dataclass(frozen=True)
class PlannedStep:
    """One table with the days to recompute.

    Args:
        table: its name.
        reasons: of every day, oldest first.
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
        found: defaultdict[Reasons, list[date]] = defaultdict(list)
        for day, reasons in self.reasons.items():
            found[reasons].append(day)
        return {reasons: tuple(days) for reasons, days in found.items()}


@dataclass(frozen=True)
class Plan:
    """What a refresh would do.

    Args:
        intakes: what raw tables take first; the days that this touches join the steps.
        steps: each after those it reads.
        waiting: days that are stale only through code or configuration and that nobody asked for.
    """

    intakes: tuple[Intake, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    waiting: tuple[PlannedStep, ...] = ()

    @property
    def estimate(self) -> Estimate | None:
        """Of all steps; None if nothing is known of one of them."""
        return total(step.estimate for step in self.steps)

    @property
    def days(self) -> int:
        """How many days of tables are recomputed."""
        return sum(len(step.days) for step in self.steps)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.intakes and not self.steps


def make_plan(
    catalogue: Catalogue,
    standing: Standing,
    stale_days: Stale,
    past: Past,
    request: Request = AUTOMATIC,
    intakes: Collection[Intake] = (),
) -> Plan:
    """The steps that bring what is asked for up to date: every stale day, and every day that one of them reaches.

    Args:
        catalogue: all tables, each after those it reads.
        standing: where their days stand.
        stale_days: as `standing.stale` finds them.
        past: what these were made from.
        request: what is asked for.
        intakes: what waits for raw tables.
    """
    wanted = wanted_days(catalogue, request, standing.calendar)
    steps: dict[str, PlannedStep] = {}
    waiting: list[PlannedStep] = []
    for contract in catalogue:
        table = contract.name
        days = wanted.get(table, frozenset())
        if not contract.inputs or not days:
            continue
        found: defaultdict[date, set[Reason]] = defaultdict(set)
        by_version = through_version(contract, days, standing)
        taken = days & stale_days.get(table, {}).keys()
        for day, reasons in through_data(contract, taken, standing, past).items():
            found[day].update(reasons)
        for day, why in _reached(contract, days - taken, standing, steps).items():
            found[day] |= why
        if request.force and (not request.tables or table in request.tables):
            asked = days if request.days is None else days & request.days
            for day in asked:
                found[day].add("asked for")
        for day, reasons in by_version.items():
            if request.by_person or day in found:
                found[day].update(reasons)
        known = standing.marks.get(table, {})
        if found:
            by_day = {day: ordered(found[day]) for day in sorted(found)}
            steps[table] = PlannedStep(table, by_day, estimate(by_day, known))
        if left := {day: by_version[day] for day in sorted(by_version.keys() - found.keys())}:
            waiting.append(PlannedStep(table, left, estimate(left, known)))
    takes = tuple(intake for intake in intakes if wanted.get(intake.table))
    return Plan(takes, tuple(steps.values()), tuple(waiting))


def wanted_days(catalogue: Catalogue, request: Request, calendar: Calendar) -> dict[str, frozenset[date]]:
    """The days asked for, and those of other tables that they are made from, through every window."""
    every = frozenset(calendar.days())
    if not request.tables and request.days is None:
        return dict.fromkeys(catalogue.names, every)
    named = request.tables or set(catalogue.names)
    days = every if request.days is None else every & request.days
    wanted = {name: set(days) for name in named}
    for contract in reversed(catalogue.tables):
        for read in contract.inputs:
            for span in union_read(read.window, wanted.get(contract.name, ()), calendar):
                wanted.setdefault(read.table, set()).update(day_range(*span))
    return {table: frozenset(found) for table, found in wanted.items()}


def reason_counts(steps: Iterable[PlannedStep]) -> dict[Reason, int]:
    """How many days have each reason; a day that has two counts for both."""
    found: defaultdict[Reason, int] = defaultdict(int)
    for step in steps:
        for reasons, days in step.by_reasons.items():
            for reason in reasons:
                found[reason] += len(days)
    return {reason: found[reason] for reason in ordered(found.keys())}


def _reached(
    contract: Contract, days: Collection[date], standing: Standing, steps: Mapping[str, PlannedStep]
) -> dict[date, set[Reason]]:
    """The days that a step of an input reaches and that will then have all they read."""
    found: defaultdict[date, set[Reason]] = defaultdict(set)
    for read in contract.inputs:
        if read.table in steps:
            for span in union_reached(read.window, steps[read.table].days, standing.calendar):
                for day in day_range(*span):
                    found[day].add(through_input(read))
    possible = _computable(contract, found.keys() & set(days), standing, steps)
    new = never_computed(possible, standing.marks.get(contract.name, {}))
    return {day: set(new[day]) if day in new else found[day] for day in possible}


def _computable(
    contract: Contract, days: Collection[date], standing: Standing, steps: Mapping[str, PlannedStep]
) -> frozenset[date]:
    """The days all of whose inputs are there, or will be once the steps before are done."""
    found = frozenset(days)
    for read in contract.inputs:
        there = standing.marks.get(read.table, {}).keys() | (steps[read.table].days if read.table in steps else ())
        lacking = [day for day in standing.calendar.days() if day not in there]
        found = frozenset(day for day in found if not _reads_one_of(lacking, read, day, standing.calendar))
    return found


def _reads_one_of(lacking: list[date], read: Input, day: date, calendar: Calendar) -> bool:
    start, end = days_read(read.window, day, calendar)
    return bisect_left(lacking, start) < bisect_right(lacking, end)
