"""Days of each table in a plan file, the order in which they are staged, and a sample of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import KeyScope, Request
from platform_assets.planning.windows import Calendar, day_range, ranges_read, union_reached, union_read


def reached_days(
    catalogue: Catalogue, named: Mapping[str, Collection[date]], calendar: Calendar
) -> dict[str, frozenset[date]]:
    """Return the named days and all days that read them through any window: stale if they come out differently."""
    reached = {table: set(days) for table, days in named.items()}
    for contract in catalogue:
        for read in contract.inputs:
            for span in union_reached(read.window, reached.get(read.table, ()), calendar):
                reached.setdefault(contract.name, set()).update(day_range(*span))
    return {table: frozenset(days) for table, days in reached.items() if days}


def request_for(
    file: PlanFile,
    by_table: Mapping[str, frozenset[date]],
    keys: KeyScope | None,
    protected_too: frozenset[date] | None = None,
) -> Request:
    """Return the request of a plan file for some days of tables.

    Args:
        protected_too: protected days that are planned, too; by default those that the file overrides.
    """
    overridden = file.override_protected.named_days() if file.override_protected else frozenset()
    return Request(
        frozenset(file.tables),
        by_person=True,
        force=file.policy == "recompute",
        by_table=by_table,
        protected_too=overridden if protected_too is None else protected_too,
        keys=keys,
    )


@dataclass(frozen=True)
class RolloutStep:
    """Days staged before the gates judge them.

    Args:
        share: percentage of the named days that is staged after it.
        days: its days, by table, each table after its inputs.
    """

    share: int
    days: Mapping[str, tuple[date, ...]]

    @property
    def count(self) -> int:
        """Return how many table-days it computes."""
        return sum(len(days) for days in self.days.values())


def in_rollout_order(days: Iterable[date], volumes: Mapping[date, int]) -> tuple[date, ...]:
    """Order the days so that each prefix is spread over weekdays, volumes and the whole range.

    The first and the last day come first: ranges are most often wrong there. The others are sorted by weekday and
    volume, and taken from that order by bit reversal (the van der Corput sequence of base 2), so that each next one
    falls into the widest gap. The same days and volumes have the same order.

    Args:
        volumes: rows of each day, if known.
    """
    every = sorted(set(days))
    ends = list(dict.fromkeys((*every[:1], *every[-1:])))
    between = sorted(every[1:-1], key=lambda day: (day.weekday(), volumes.get(day, 0), day))
    width = max(len(between) - 1, 1).bit_length()
    spread = sorted(range(len(between)), key=lambda at: int(f"{at:0{width}b}"[::-1], 2))
    return (*ends, *(between[at] for at in spread))


def rollout_steps(
    plan: Plan,
    named: Collection[date],
    tables: Collection[str],
    shares: Sequence[int],
    catalogue: Catalogue,
    calendar: Calendar,
    volumes: Mapping[date, int],
) -> tuple[RolloutStep, ...]:
    """Divide a plan into steps, with every day in exactly one.

    Inputs of the named tables are computed in the first step, with their days that are not named. A day is computed in
    the first step that stages all days of the plan that it reads, so no day is computed twice: a window over a month
    waits for the month.

    Args:
        shares: percents of the named days, growing up to 100.
    """
    order = in_rollout_order(named, volumes)
    planned = {step.table: step.days for step in plan.steps}
    before = {*catalogue.with_inputs(tables)}.difference(tables)
    left: dict[str, list[date]] = {table: list(days) for table, days in planned.items()}
    steps: list[RolloutStep] = []
    for share in shares:
        later = set(order[ceil(len(order) * share / 100) :])
        now: dict[str, tuple[date, ...]] = {}
        for contract in catalogue:
            table = contract.name
            if not left.get(table):
                continue
            may = [day for day in left[table] if table in before or table not in tables or day not in later]
            ready = tuple(day for day in may if not _waits(contract, day, left, calendar))
            if ready:
                now[table] = ready
                taken = set(ready)
                left[table] = [day for day in left[table] if day not in taken]
        if now:
            steps.append(RolloutStep(share, now))
    return tuple(steps)


def _waits(contract: Contract, day: date, left: Mapping[str, Sequence[date]], calendar: Calendar) -> bool:
    """Return whether a day reads one that is not computed yet."""
    return any(
        bisect_left(days, first) < bisect_right(days, last)
        for read in contract.inputs
        for days in [left.get(read.table, ())]
        for first, last in ranges_read(read.window, day, calendar)
    )


def sampled_days(
    plan: Plan, sample: Collection[date], tables: Collection[str], catalogue: Catalogue, calendar: Calendar
) -> dict[str, frozenset[date]]:
    """Return the days of a plan, by table, that can be computed in a sample with the same result as in the whole plan.

    These are the sample of the named tables, with their inputs in the plan; and days of downstream tables that read no
    other day of the plan.
    """
    planned = {step.table: frozenset(step.days) for step in plan.steps}
    chosen = {table: planned.get(table, frozenset()).intersection(sample) for table in tables}
    for contract in reversed(catalogue.tables):
        for table, days in _read(catalogue, contract.name, chosen.get(contract.name, ()), calendar).items():
            chosen[table] = chosen.get(table, frozenset()) | (days & planned.get(table, frozenset()))
    made_from = set(catalogue.with_inputs(tables))
    for contract in catalogue:
        if contract.name in made_from:
            continue
        chosen[contract.name] = frozenset(
            day
            for day in planned.get(contract.name, ())
            if all(
                days & planned.get(table, frozenset()) <= chosen.get(table, frozenset())
                for table, days in _read(catalogue, contract.name, (day,), calendar).items()
            )
        )
    return {table: days for table, days in chosen.items() if days}


def _read(catalogue: Catalogue, table: str, days: Collection[date], calendar: Calendar) -> dict[str, frozenset[date]]:
    """Return the days that days of a table read, by input."""
    read: dict[str, frozenset[date]] = {}
    for one in catalogue[table].inputs:
        spans = union_read(one.window, days, calendar)
        read[one.table] = read.get(one.table, frozenset()).union(*(day_range(*span) for span in spans))
    return read
