"""How planning grows with history: one dirty day among 1, 2, 5, 10 and 30 years of twenty tables.

    uv run python benchmarks/planning_growth.py [--quick] [--json PATH] [--plot PNG] [--years 30] [--rounds 9]

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

import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.growing_lake import FIRST, SOURCE, Installation, last_day
from benchmarks.harness import BenchmarkError, Goal, Outcome, print_outcomes, write_json
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

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Point:
    """One size of the installation.

    Args:
        years: of history.
        releases: of the lake.
        recorded: days in the ledger, over all tables and publications.
        ledger_mib: its file.
        planning_s: of each round.
        opening_s: of each round.
        tick_s: of each round.
        whole_s: of planning without a look before, once.
        planned: days of the plan, by table.
    """

    years: int
    releases: int
    recorded: int
    ledger_mib: float
    planning_s: tuple[float, ...]
    opening_s: tuple[float, ...]
    tick_s: tuple[float, ...]
    whole_s: float
    planned: Mapping[str, tuple[date, ...]]


def measure(installation: Installation, years: int, rounds: int) -> Point:
    """Plan for one dirty day in the middle of history.

    Raises:
        BenchmarkError: the plan is not what the change reaches.
    """
    installation.grow(last_day(years))
    day = (FIRST + (installation.until - FIRST) / 2).replace(day=10)
    calendar = Calendar(FIRST, installation.until)
    check(installation, {})
    installation.dirty(day)
    expected = reached(day, calendar)
    check(installation, expected)
    planning_s, opening_s, tick_s = [], [], []
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
            tick_s.append(time.perf_counter() - planned)
        opening_s.append(opened - started)
        planning_s.append(planned - opened)
    installation.clean(day)
    whole_s = at_every_day(installation)
    size_mib = installation.ledger_file.stat().st_size / (1 << 20)
    return Point(
        years,
        installation.releases,
        installation.recorded,
        size_mib,
        tuple(planning_s),
        tuple(opening_s),
        tuple(tick_s),
        whole_s,
        expected,
    )


def at_every_day(installation: Installation) -> float:
    """Seconds of planning where nobody looked before."""
    with installation.open(installation.until) as platform:
        platform.ledger.looks.forget()
        started = time.perf_counter()
        plan(platform)
        return time.perf_counter() - started


def plan(platform: Platform) -> dict[str, tuple[date, ...]]:
    """What a refresh would recompute: the days of each table."""
    return {step.table: tuple(step.days) for step in plan_steps(platform).steps}


def check(installation: Installation, expected: Mapping[str, tuple[date, ...]]) -> None:
    """Hold the plan against what it must be.

    Raises:
        BenchmarkError: it is something else.
    """
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
    one = (day,)
    return {
        f"silver.{SOURCE}": one,
        f"gold.{SOURCE}_daily": one,
        f"gold.{SOURCE}_28d": trailing,
        f"gold.{SOURCE}_month": month,
    }


def print_points(points: list[Point]) -> None:
    """The curve as a table."""
    table = Table(title=f"Planning for one dirty day of {len(TABLES)} tables", title_justify="left")
    for heading in ("years", "releases", "days recorded", "ledger MiB", "planned days"):
        table.add_column(heading, justify="right")
    for heading in ("planning median s", "min to max s", "tick median s", "at every day s", "opening median s"):
        table.add_column(heading, justify="right")
    for point in points:
        table.add_row(
            str(point.years),
            f"{point.releases:,}",
            f"{point.recorded:,}",
            f"{point.ledger_mib:.0f}",
            str(sum(map(len, point.planned.values()))),
            f"{median(point.planning_s):.2f}",
            f"{min(point.planning_s):.2f} to {max(point.planning_s):.2f}",
            f"{median(point.tick_s):.2f}",
            f"{point.whole_s:.2f}",
            f"{median(point.opening_s):.2f}",
        )
    console.print(table)


def plot(points: list[Point], file: Path) -> None:
    """The curve as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    years = [point.years for point in points]
    for label, seconds in (
        ("planning", [point.planning_s for point in points]),
        ("a tick of a sensor", [point.tick_s for point in points]),
        ("opening the platform", [point.opening_s for point in points]),
    ):
        axes.plot(years, [median(one) for one in seconds], marker="o", label=label)
        axes.fill_between(years, [min(one) for one in seconds], [max(one) for one in seconds], alpha=0.2)
    axes.axhline(MOST_S, linestyle="--", color="grey", label="goal for planning")
    axes.set(xlabel=f"years of {len(TABLES)} tables, every day published twice", ylabel="seconds")
    axes.set_title("One dirty day: median, least and most of all rounds", fontsize=10)
    axes.set_xticks(years)
    axes.set_ylim(bottom=0)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
    plot_path: Annotated[Path | None, typer.Option("--plot", help="Draw the curve there, as PNG.")] = None,
    years: Annotated[int, typer.Option(min=1, max=max(SIZES_YEARS), help="Greatest size.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each size.")] = 9,
) -> None:
    """Measure planning. Exits with 1 if the goal is missed, with 3 if nothing could be measured."""
    sizes = [size for size in SIZES_YEARS if size <= years]
    with tempfile.TemporaryDirectory(prefix="planning-growth-", ignore_cleanup_errors=True) as folder:
        installation = Installation(Path(folder), max(sizes))
        try:
            points = [measure(installation, size, 3 if quick else rounds) for size in sizes]
        except BenchmarkError as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error
    print_points(points)
    if plot_path:
        plot(points, plot_path)
    outcomes: list[Outcome] = [
        Goal(f"planning, {point.years} years, {len(TABLES)} tables, one dirty day, s", "<=", MOST_S).judge(
            point.planning_s
        )
        for point in points[-1:]
    ]
    by_years = {point.years: median(point.planning_s) for point in points}
    if 10 in by_years and 30 in by_years:
        outcomes.append(Goal("planning, 30 years to 10, times", "<=", MOST_TIMES).judge([by_years[30] / by_years[10]]))
    print_outcomes(console, "Planning", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


if __name__ == "__main__":
    typer.run(main)
