"""The first load: a year of landed files to gold, against what the same work costs without the platform.

    uv run python benchmarks/first_load.py [--quick] [--json PATH] [--days 366] [--scale 5] [--rounds 3]

Every side is a whole process that starts from the same landed files, late arrivals included, and an empty lake:

* the platform: `refresh` in one process, without Dagster;
* bare Spark: `bare_spark.py`, the same tables by hand on the same session settings;
* DuckDB: `bare_duckdb.py`, writing Parquet, at a scale factor at which starting up counts for little;
* the platform through Dagster;
* one process a day for 30 days, against one process for the 30 days.

Before any time counts, the sides must hold the same rows: their number, their money, a hash over every column.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.equality import UnequalError
from benchmarks.harness import (
    GIB,
    BenchmarkError,
    Goal,
    Outcome,
    Run,
    alternate,
    print_outcomes,
    print_runs,
    ratios,
    write_json,
)
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation

YEAR_DAYS = 366
MONTH_DAYS = 30
QUICK_ROUNDS_S = 240
"""In `--quick` a comparison begins no round that would, as long as the one before, end later than this."""

PLATFORM, BARE_SPARK, DUCKDB, DAGSTER = "platform", "bare Spark", "DuckDB", "platform through Dagster"
_UNITS_GIB = {"k": 1 / (1 << 20), "m": 1 / (1 << 10), "g": 1, "t": 1 << 10}

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        days: of sales.
        scale: factor of the second load, which is held against DuckDB, too.
        rounds: of both loads; the one through Dagster and the comparison by day have one.
        daily_runs: of the 30 days, how many are really run one by one; the rest is extrapolated.
        rounds_within_s: a comparison begins no round that would end later than this after its first.
    """

    days: int
    scale: int
    rounds: int
    daily_runs: int
    rounds_within_s: float

    @classmethod
    def quick(cls, scale: int) -> Plan:
        """What fits into a quarter of an hour."""
        return cls(30, scale, 2, 3, QUICK_ROUNDS_S)


def at_scale_1(root: Path, plan: Plan) -> list[Outcome]:
    """(a) against (b), and the same through Dagster."""
    with landed(root, Simulation(days=plan.days)) as sample:
        runs = _compare(sample, plan, {BARE_SPARK: "benchmarks.bare_spark"})
        through_dagster = sample.platform(DAGSTER, "dagster")
        sample.check(PLATFORM, DAGSTER)
    print_runs(console, f"{plan.days} days, scale factor 1", runs | {DAGSTER: [through_dagster]})
    _print_tables(runs)
    share_ms = 1000 * through_dagster.seconds / (len(TABLES) * plan.days)
    more = through_dagster.seconds / median(run.seconds for run in runs[PLATFORM])
    console.print(f"Through Dagster: {share_ms:.0f} ms per asset and day ({len(TABLES)} assets, {plan.days} days).\n")
    return [
        Goal(f"platform / bare Spark, {plan.days} days", "<=", 1.15).judge(ratios(runs, PLATFORM, BARE_SPARK)),
        Goal(f"through Dagster / without, {plan.days} days", "<=", 1.3).judge([more]),
    ]


def at_scale(root: Path, plan: Plan) -> list[Outcome]:
    """(a) against (b) and (c), with the memory of (a)."""
    what = f"{plan.days} days, scale factor {plan.scale}"
    with landed(root, Simulation(days=plan.days, scale=plan.scale)) as sample:
        runs = _compare(sample, plan, {BARE_SPARK: "benchmarks.bare_spark", DUCKDB: "benchmarks.bare_duckdb"})
    print_runs(console, what, runs)
    _print_tables(runs)
    memory = re.search(r"^spark\.driver\.memory: (\d+)([kmgt])$", runs[PLATFORM][0].printed.lower(), re.MULTILINE)
    heap_gib = [int(memory[1]) * _UNITS_GIB[memory[2]]] if memory else []
    peaks_gib = [run.jvm_peak_bytes / GIB for run in runs[PLATFORM] if run.jvm_peak_bytes is not None]
    return [
        Goal(f"platform / bare Spark, {what}", "<=", 1.3).judge(ratios(runs, PLATFORM, BARE_SPARK)),
        Goal(f"platform / DuckDB, {what}", "<=", 6).judge(ratios(runs, PLATFORM, DUCKDB)),
        Goal("spark.driver.memory, GiB", "<=", 3).judge(heap_gib),
        Goal(f"JVM's peak resident memory, GiB, {what}", "<=", 4).judge(peaks_gib and [max(peaks_gib)]),
    ]


def by_day(root: Path, plan: Plan) -> list[Outcome]:
    """(d): a process a day against one process for all days."""
    with landed(root, Simulation(days=MONTH_DAYS)) as sample:
        together = sample.platform("one run", "engine")
        days = [sample.simulation.first + timedelta(days=n) for n in range(plan.daily_runs)]
        singly = [sample.platform("a run a day", "day", day) for day in days]
        sample.check("one run", "a run a day", until=days[-1])
    # The first run takes everything that lies in the landing area, the others find it taken
    seconds = singly[0].seconds + mean(run.seconds for run in singly[1:]) * (MONTH_DAYS - 1)
    print_runs(console, f"{MONTH_DAYS} days, scale factor 1", {"one run": [together], "each run of a day": singly})
    how = "" if len(singly) == MONTH_DAYS else f", extrapolated from {len(singly)} days"
    goal = Goal(f"a run a day / one run, {MONTH_DAYS} days{how}", ">=", 10)
    return [goal.judge([seconds / together.seconds])]


def _compare(sample: Sample, plan: Plan, scripts: Mapping[str, str]) -> dict[str, list[Run]]:
    """The platform and scripts by turns, each from nothing; equal after every round."""

    def platform(_: int) -> Run:
        sample.empty(PLATFORM)
        return sample.platform(PLATFORM, "engine")

    def script(name: str) -> Callable[[int], Run]:
        return lambda _: sample.script(name, scripts[name])

    def check() -> None:
        for name in scripts:
            sample.check(PLATFORM, name)

    sides: dict[str, Callable[[int], Run]] = {PLATFORM: platform, **{name: script(name) for name in scripts}}
    return alternate(sides, plan.rounds, plan.rounds_within_s, check)


def _print_tables(runs: dict[str, list[Run]]) -> None:
    """Where the time goes: median seconds of each table, as the sides say; the rest is starting and ending."""
    said = {side: [_seconds_by_table(run) for run in done] for side, done in runs.items()}
    table = Table(title="Seconds by table", title_justify="left")
    table.add_column("table")
    for side in said:
        table.add_column(side, justify="right")
    for contract in TABLES:
        medians = (median(seconds.get(contract.name, 0.0) for seconds in one) for one in said.values())
        table.add_row(contract.name, *(f"{seconds:.1f}" for seconds in medians))
    rest = (
        median(run.seconds - sum(s.values()) for run, s in zip(runs[side], said[side], strict=True)) for side in said
    )
    table.add_row("start and end", *(f"{seconds:.1f}" for seconds in rest))
    console.print(table)


def _seconds_by_table(run: Run) -> dict[str, float]:
    """What a side printed: `raw.sales: 1.2 s`; refused rows count with raw, quarantined ones with silver."""
    found: dict[str, float] = {}
    for layer, name, seconds in re.findall(r"^(\w+)[./](\w+): ([\d.]+) s$", run.printed, re.MULTILINE):
        table = f"{ {'refused': 'raw', 'quarantine': 'silver'}.get(layer, layer) }.{name}"
        found[table] = found.get(table, 0.0) + float(seconds)
    return found


def main(
    quick: Annotated[bool, typer.Option("--quick", help="At most a quarter of an hour, on fewer days.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
    days: Annotated[int, typer.Option(min=1, max=YEAR_DAYS, help="Days of sales.")] = YEAR_DAYS,
    scale: Annotated[int, typer.Option(min=1, help="Scale factor of the second load.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of alternating sides.")] = 3,
    daily_runs: Annotated[
        int, typer.Option(min=2, max=MONTH_DAYS, help="Of 30 days, how many to run one by one.")
    ] = MONTH_DAYS,
) -> None:
    """Measure the first load. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    plan = Plan.quick(scale) if quick else Plan(days, scale, rounds, daily_runs, float("inf"))
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="first-load-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        try:
            warm_up(root)
            for comparison in (at_scale_1, at_scale, by_day):
                outcomes += comparison(root, plan)
        except (BenchmarkError, UnequalError) as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error
    print_outcomes(console, "The first load", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


if __name__ == "__main__":
    typer.run(main)
