"""The gradual rollout: which days are staged first, so that gates see a little of everything before it is paid for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import Calendar, ranges_read


@dataclass(frozen=True)
class RolloutStep:
    """What is staged before the gates are asked.

    Args:
        share: percent of the named days that are staged once it is done.
        days: that are computed in it, by table, each table after those it reads.
    """

    share: int
    days: Mapping[str, tuple[date, ...]]

    @property
    def count(self) -> int:
        """How many days of tables it computes."""
        return sum(len(days) for days in self.days.values())


def in_rollout_order(days: Iterable[date], volumes: Mapping[date, int]) -> tuple[date, ...]:
    """The days in an order of which every beginning is spread over weekdays, volumes and the whole range.

    The first and the last day come first: there ranges are wrong most often. The others are sorted by weekday and
    volume, and taken from that order by bit reversal, the van der Corput sequence of base 2, so that each next one
    falls into the widest gap. The same days and volumes have the same order.

    Args:
        days: in any order.
        volumes: rows of a day, of those that are known.
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
    """Cut a plan into steps, every day of it in exactly one.

    What the named tables are made from is computed in the first, days of their own that are not named among it. A day
    is computed in the first step in which all days of the plan that it reads are staged, so that none is computed
    twice: a window over a month waits for the month.

    Args:
        plan: the days to compute.
        named: days that the plan file names.
        tables: that it names.
        shares: percents of the named days, growing up to 100.
        catalogue: all tables, each after those it reads.
        calendar: the days that exist.
        volumes: rows of the named days, of those that are known.
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
    """Whether a day reads one that is still to be computed."""
    return any(
        bisect_left(days, first) < bisect_right(days, last)
        for read in contract.inputs
        for days in [left.get(read.table, ())]
        for first, last in ranges_read(read.window, day, calendar)
    )
