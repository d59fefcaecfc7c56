"""How planning grows with history: one dirty day among 1, 2, 5, 10 and 30 years of twenty tables.

    uv run python benchmarks/planning_growth.py [--quick] [--json PATH] [--years 30] [--rounds 9]

No Spark and no rows: a lake's releases and its ledger (SQLite) are written through their own functions, as daily runs
leave them. Every day of every table was published twice, as it came and corrected, each time with all tables in one
publication: ten years are 7,300 releases and 146,000 days. Then one day of a raw table in the middle of history gets
other content.

* Planning is what a refresh asks before it works: which days of which tables are stale, read from the ledger and
  decided. The plan must be the days that the change reaches and no others, else nothing is measured. Every round the
  day gets other content after all was found up to date, as happens from day to day.
* A tick is what a sensor asks: the same, and what waits in the landing area, where nothing lies.
* At every day is the same plan without a look before: the first one, and the first after code or a contract changed.
* Opening is what every command does before: the ledger opened, and held against the lake's releases. No goal.

Sizes are measured one after the other while the installation grows, every round with the platform opened anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks.growing_lake import FIRST, SOURCE, Installation, last_day
from benchmarks.harness import BenchmarkError, Goal, JsonPath, Outcome, Quick, measured, middle_and_spread, print_table
from benchmarks.many_tables import TABLES
from platform_assets.contracts import MonthToDate
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Platform
from platform_assets.engine.state.planner import plan_steps
from platform_assets.planning.windows import Calendar, day_range, ranges_reached

SIZES_YEARS = (1, 2, 5, 10, 30)
MOST_S, MOST_TIMES = 0.2, 1.5
MOST_FILES = 100
"""Per run of a sensor."""


class Point(NamedTuple):
    """One size of the installation, and the seconds of each round on it; at every day is planned once."""

    years: int
    releases: int
    recorded: int
    ledger_mib: float
    planning_s: list[float]
    opening_s: list[float]
    tick_s: list[float]
    whole_s: float
    planned: int


def measure(installation: Installation, years: int, rounds: int) -> Point:
    """Plan for one dirty day in the middle of history."""
    installation.grow(last_day(years))
    day = (FIRST + (installation.until - FIRST) / 2).replace(day=10)
    calendar = Calendar(FIRST, installation.until)
    check(installation, {})
    installation.dirty(day)
    expected = reached(day, calendar)
    check(installation, expected)
    point = Point(
        years, installation.releases, installation.recorded, 0, [], [], [], 0, sum(map(len, expected.values()))
    )
    for _ in range(rounds):
        installation.clean(day)
        check(installation, {})
        installation.dirty(day)
        started = time.perf_counter()
        with installation.open(installation.until) as platform:
            opened = time.perf_counter()
            plan(platform)
            planned = time.perf_counter()
            waiting(platform, MOST_FILES)
            point.tick_s.append(time.perf_counter() - planned)
        point.opening_s.append(opened - started)
        point.planning_s.append(planned - opened)
    installation.clean(day)
    with installation.open(installation.until) as platform:
        platform.ledger.looks.forget()
        started = time.perf_counter()
        plan(platform)
        whole_s = time.perf_counter() - started
    return point._replace(whole_s=whole_s, ledger_mib=installation.ledger_file.stat().st_size / (1 << 20))


def plan(platform: Platform) -> dict[str, tuple[date, ...]]:
    """What a refresh would recompute: the days of each table."""
    return {step.table: tuple(step.days) for step in plan_steps(platform).steps}


def check(installation: Installation, expected: Mapping[str, tuple[date, ...]]) -> None:
    """Hold the plan against what it must be."""
    with installation.open(installation.until) as platform:
        planned = plan(platform)
    if planned != expected:
        found = {table: len(days) for table, days in planned.items()}
        wanted = {table: len(days) for table, days in expected.items()}
        raise BenchmarkError(f"The plan has {found} days and should have {wanted}.")


def reached(day: date, calendar: Calendar) -> dict[str, tuple[date, ...]]:
    """The days that other content of one raw day reaches, written down by hand."""
    trailing = tuple(other for other in day_range(day, day + timedelta(days=27)) if other in calendar)
    month = tuple(reached for span in ranges_reached(MonthToDate(), day, calendar) for reached in day_range(*span))
    reached_days = {"silver.{}": (day,), "gold.{}_daily": (day,), "gold.{}_28d": trailing, "gold.{}_month": month}
    return {table.format(SOURCE): days for table, days in reached_days.items()}


def print_points(points: list[Point]) -> None:
    """The curve as a table."""
    headings = ("years", "releases", "days recorded", "ledger MiB", "planned days", "planning median s", "min to max s")
    rows = [
        (
            str(point.years),
            f"{point.releases:,}",
            f"{point.recorded:,}",
            f"{point.ledger_mib:.0f}",
            str(point.planned),
            *middle_and_spread(point.planning_s, 2),
            *(f"{seconds:.2f}" for seconds in (median(point.tick_s), point.whole_s, median(point.opening_s))),
        )
        for point in points
    ]
    more = ("tick median s", "at every day s", "opening median s")
    print_table(f"Planning for one dirty day of {len(TABLES)} tables", (*headings, *more), rows, left=0)


def main(
    quick: Quick = False,
    json_path: JsonPath = None,
    years: Annotated[int, typer.Option(min=1, max=max(SIZES_YEARS), help="Greatest size.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each size.")] = 9,
) -> None:
    """Measure planning; quickly in fewer rounds."""
    sizes = [size for size in SIZES_YEARS if size <= years]

    def measure_all(root: Path) -> list[Outcome]:
        installation = Installation(root, max(sizes))
        points = [measure(installation, size, 3 if quick else rounds) for size in sizes]
        print_points(points)
        goal = Goal(f"planning, {sizes[-1]} years, {len(TABLES)} tables, one dirty day, s", "<=", MOST_S)
        outcomes = [goal.judge(points[-1].planning_s)]
        took = {point.years: median(point.planning_s) for point in points}
        if 10 in took and 30 in took:
            outcomes.append(Goal("planning, 30 years to 10, times", "<=", MOST_TIMES).judge([took[30] / took[10]]))
        return outcomes

    measured("Planning", json_path, measure_all)


if __name__ == "__main__":
    typer.run(main)
