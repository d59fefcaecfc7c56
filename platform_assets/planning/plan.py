"""The plan: exactly the days that are to be recomputed, of which tables, in which order, and why.

A plan is explained or executed from the same value. At execution days may be struck, because what they read came out as
it was; none are added.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

from platform_assets.contracts import Catalogue, Contract
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
from platform_assets.planning.standing import Stale, Standing, left_to_people, outdated, stale, unchanged
from platform_assets.planning.windows import Calendar, day_range, days_read, union_reached


@dataclass(frozen=True)
class Intake:
    """What waits for a raw table. Which days its files touch is known once they are taken.

    Args:
        table: the raw table.
        files: how many.
        bytes: of all of them.
        quiet: days to load as empty, because nothing was to be expected on them.
        due: days that have come and of which rows wait that arrived too far ahead.
    """

    table: str
    files: int = 0
    bytes: int = 0
    quiet: tuple[date, ...] = ()
    due: tuple[date, ...] = ()


class Lacking(NamedTuple):
    """A day of a table that was never loaded."""

    table: str
    day: date


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
        waiting: days that wait for a person and that nobody asked for: stale only through code or configuration, or of
            a table that no run touches by itself until it follows its contract.
        unready: days asked for by name, or needed together with others, that cannot be computed, by table, each with
            an input day that was never loaded.
        by_people: tables that the plan leaves alone, because one of them has to follow its contract and nobody asked.
        bereft: days that are there and read one that is not, as after a rollback to before it was ever computed, by
            table, each with that one. They stay as they are until it is there.
    """

    intakes: tuple[Intake, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    waiting: tuple[PlannedStep, ...] = ()
    unready: Mapping[str, Mapping[date, Lacking]] = field(default_factory=dict)
    by_people: tuple[str, ...] = ()
    bereft: Mapping[str, Mapping[date, Lacking]] = field(default_factory=dict)

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
    calendar = standing.calendar
    wanted = wanted_days(catalogue, request, calendar)
    by_people: Collection[str] = () if request.by_person else left_to_people(catalogue, standing)
    steps: dict[str, PlannedStep] = {}
    waiting: list[PlannedStep] = []
    unready: dict[str, dict[date, Lacking]] = {}
    bereft: dict[str, dict[date, Lacking]] = {}
    for contract in catalogue:
        table, known = contract.name, standing.marks.get(contract.name, {})
        days = wanted.get(table, frozenset())
        if not contract.inputs or not days:
            continue
        by_version = through_version(contract, days, standing)
        missing = _missing(contract, standing, steps)
        if lost := _lacking_each(contract, _read_what_is_gone(contract, known, missing, calendar), missing, calendar):
            bereft[table] = lost
        found = _through_inputs(contract, days, standing, stale_days.get(table, {}), past, steps, missing)
        if table in by_people:
            left = {day: ordered({*found[day], *by_version.get(day, ())}) for day in sorted({*found, *by_version})}
            if left:
                waiting.append(PlannedStep(table, left, estimate(left, known)))
            continue
        asked = request.asked(table, days)
        needed = asked - known.keys() - found.keys()
        if standing.changing.get(table) == "all days":
            needed |= by_version.keys()
        if lacking := _lacking_each(contract, needed, missing, calendar):
            unready[table] = lacking
            by_version = {day: why for day, why in by_version.items() if day not in lacking}
        for day in asked - lacking.keys() if request.force else ():
            found[day].add("asked for")
        for day, reasons in by_version.items():
            if request.by_person or found[day]:
                found[day].update(reasons)
        if by_day := {day: ordered(found[day]) for day in sorted(found) if found[day]}:
            steps[table] = PlannedStep(table, by_day, estimate(by_day, known))
        if left := {day: by_version[day] for day in sorted(by_version.keys() - by_day.keys())}:
            waiting.append(PlannedStep(table, left, estimate(left, known)))
    takes = tuple(one for one in intakes if wanted.get(one.table) and one.table not in by_people)
    return Plan(takes, tuple(steps.values()), tuple(waiting), unready, tuple(sorted(by_people)), bereft)


def left_to_do(
    contract: Contract, step: PlannedStep, standing: Standing, request: Request
) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """What is left of a planned step once the steps before it are done.

    Days whose content was refused are left alone while they would be made from the same input in the same way.

    Args:
        contract: of the step's table.
        step: as it was planned.
        standing: where the days stand now.
        request: that was planned.

    Returns:
        The days that still need work, and those struck: what they read came out as it was.
    """
    needed = set(stale(contract, step.days, standing))
    if request.by_person:
        needed |= outdated(contract, step.days, standing).keys()
    needed |= {day for day, reasons in step.reasons.items() if "asked for" in reasons}
    struck = tuple(day for day in unchanged(contract, step.days, standing) if day not in needed)
    return tuple(day for day in step.days if day in needed), struck


def reason_counts(steps: Iterable[PlannedStep]) -> dict[Reason, int]:
    """How many days have each reason; a day that has two counts for both."""
    found: defaultdict[Reason, int] = defaultdict(int)
    for step in steps:
        for reasons, days in step.by_reasons.items():
            for reason in reasons:
                found[reason] += len(days)
    return {reason: found[reason] for reason in ordered(found.keys())}


def _through_inputs(
    contract: Contract,
    days: Collection[date],
    standing: Standing,
    stale_days: Collection[date],
    past: Past,
    steps: Mapping[str, PlannedStep],
    missing: Mapping[str, list[date]],
) -> defaultdict[date, set[Reason]]:
    """Why days are stale through data, or will be once the steps before are done and they have all they read."""
    found: defaultdict[date, set[Reason]] = defaultdict(set)
    taken = set(days).intersection(stale_days)
    for day, reasons in through_data(contract, taken, standing, past).items():
        found[day].update(reasons)
    reached: defaultdict[date, set[Reason]] = defaultdict(set)
    for read in contract.inputs:
        if read.table in steps:
            for span in union_reached(read.window, steps[read.table].days, standing.calendar):
                for day in day_range(*span):
                    reached[day].add(through_input(read))
    others = reached.keys() & set(days) - taken
    possible = [day for day in others if not _lacking(contract, day, missing, standing.calendar)]
    new = never_computed(possible, standing.marks.get(contract.name, {}))
    for day in possible:
        found[day].update(new.get(day, reached[day]))
    return found


def _missing(contract: Contract, standing: Standing, steps: Mapping[str, PlannedStep]) -> dict[str, list[date]]:
    """The days of each input that are not there and will not be once the steps before are done, oldest first."""
    found: dict[str, list[date]] = {}
    for read in contract.inputs:
        there = standing.marks.get(read.table, {}).keys() | (steps[read.table].days if read.table in steps else ())
        found[read.table] = [day for day in standing.calendar.days() if day not in there]
    return found


def _lacking_each(
    contract: Contract, days: Collection[date], missing: Mapping[str, list[date]], calendar: Calendar
) -> dict[date, Lacking]:
    return {day: found for day in sorted(days) if (found := _lacking(contract, day, missing, calendar))}


def _read_what_is_gone(
    contract: Contract, known: Collection[date], missing: Mapping[str, list[date]], calendar: Calendar
) -> set[date]:
    """Days that are there and read a missing one: that had been there when they were computed."""
    last, found = max(known, default=date.min), set[date]()
    for read in contract.inputs:
        gone = missing[read.table][: bisect_right(missing[read.table], last)]
        for span in union_reached(read.window, gone, calendar) if gone else ():
            found.update(day_range(*span))
    return found.intersection(known)


def _lacking(contract: Contract, day: date, missing: Mapping[str, list[date]], calendar: Calendar) -> Lacking | None:
    """The first missing input day that a day reads."""
    for read in contract.inputs:
        start, end = days_read(read.window, day, calendar)
        at = bisect_left(missing[read.table], start)
        if at < len(missing[read.table]) and (needed := missing[read.table][at]) <= end:
            return Lacking(read.table, needed)
    return None
