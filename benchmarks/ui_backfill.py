"""A backfill from Dagster's UI: days of all tables by its daemon, against the same days by the engine in one process.

    uv run python benchmarks/ui_backfill.py [--quick] [--json PATH] [--days 90] [--rounds 3]

Every side starts from the same landed files, late arrivals included, and an empty lake:

* the engine: `refresh` in one whole process, without Dagster;
* a backfill: webserver and daemon are started on a state folder of their own, the sensor and the schedules that would
  take the files are stopped, and `launchPartitionBackfill` is sent as the UI sends it, for all tables and days;
* the same with Dagster's storage on PostgreSQL, as docs/postgresql.md sets it up.

A backfill's seconds are those from its first run's start to its last run's end, by Dagster's own records. How long the
daemon lets it wait before and after is reported apart: it looks at backfills every 30 s and at the queue every 5 s,
whatever they hold. Before any time counts, the sides must hold the same rows, and the backfill must be a single run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.daemon_backfill import Timing
from benchmarks.equality import UnequalError
from benchmarks.harness import (
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

DAYS, QUICK_DAYS, YEAR_DAYS = 90, 30, 366
BOUND = 1.8

ENGINE, SQLITE, POSTGRES = "engine", "backfill", "backfill, PostgreSQL"
_MODULES = {SQLITE: "benchmarks.daemon_backfill", POSTGRES: "benchmarks.daemon_backfill_postgres"}
_STORAGE = {SQLITE: "SQLite", POSTGRES: "PostgreSQL, 500 events a batch"}

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        days: of the backfill.
        rounds: of alternating sides.
    """

    days: int
    rounds: int

    @classmethod
    def quick(cls) -> Plan:
        """What fits into a quarter of an hour."""
        return cls(QUICK_DAYS, 1)


def against_the_engine(root: Path, plan: Plan) -> list[Outcome]:
    """Both backfills, each against the engine's run of the same round."""
    with landed(root, Simulation(days=plan.days)) as sample:
        waited: dict[str, list[Timing]] = {side: [] for side in _MODULES}

        def backfill(side: str) -> Callable[[int], Run]:
            return lambda _: _backfill(sample, side, waited[side])

        sides: dict[str, Callable[[int], Run]] = {ENGINE: lambda _: _engine(sample)}
        sides |= {side: backfill(side) for side in _MODULES}
        runs = alternate(sides, plan.rounds, float("inf"), lambda: _check(sample))
    print_runs(console, f"{plan.days} days of {len(TABLES)} tables; backfills without the waits below", runs)
    _print_waits(waited)
    for side in _MODULES:
        more = median(run.seconds for run in runs[side]) - median(run.seconds for run in runs[ENGINE])
        share_ms = 1000 * more / (len(TABLES) * plan.days)
        console.print(f"{_STORAGE[side]}: {share_ms:.0f} ms more per table and day than without Dagster.")
    return [
        Goal(f"backfill / engine, {plan.days} days, {_STORAGE[side]}", "<=", BOUND).judge(ratios(runs, side, ENGINE))
        for side in _MODULES
    ]


def _engine(sample: Sample) -> Run:
    sample.empty(ENGINE)
    return sample.platform(ENGINE, "engine")


def _backfill(sample: Sample, side: str, waited: list[Timing]) -> Run:
    """A process that runs Dagster; its seconds are the backfill's."""
    run = sample.script(side, _MODULES[side])
    waited.append(Timing.printed_by(run))
    return replace(run, seconds=waited[-1].runs_s)


def _check(sample: Sample) -> None:
    for side in _MODULES:
        sample.check(ENGINE, side)


def _print_waits(waited: dict[str, list[Timing]]) -> None:
    """What the daemon adds, whatever the size of the backfill."""
    table = Table(title="Median seconds of a backfill", title_justify="left")
    table.add_column("Dagster's storage")
    for heading in ("from launch to first run", "runs", "from last run to completed", "rounds"):
        table.add_column(heading, justify="right")
    for side, timings in waited.items():
        medians = (median(getattr(one, name) for one in timings) for name in ("before_s", "runs_s", "after_s"))
        table.add_row(_STORAGE[side], *(f"{seconds:.1f}" for seconds in medians), str(len(timings)))
    console.print(table)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="At most a quarter of an hour, on fewer days.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
    days: Annotated[int, typer.Option(min=2, max=YEAR_DAYS, help="Days of the backfill.")] = DAYS,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of alternating sides.")] = 3,
) -> None:
    """Measure a backfill from the UI. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    plan = Plan.quick() if quick else Plan(days, rounds)
    with tempfile.TemporaryDirectory(prefix="ui-backfill-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        try:
            warm_up(root)
            outcomes = against_the_engine(root, plan)
        except (BenchmarkError, UnequalError) as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error
    print_outcomes(console, "A backfill from the UI", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


if __name__ == "__main__":
    typer.run(main)
