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

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks import harness as bench
from benchmarks.daemon_backfill import Timing
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation

DAYS, QUICK_DAYS, YEAR_DAYS = 90, 30, 366
BOUND = 1.8

ENGINE, SQLITE, POSTGRES = "engine", "backfill", "backfill, PostgreSQL"
_STORAGE = {SQLITE: "SQLite", POSTGRES: "PostgreSQL, 500 events a batch"}


def against_the_engine(root: Path, days: int, rounds: int) -> list[bench.Outcome]:
    """Both backfills, each against the engine's run of the same round."""
    with landed(root, Simulation(days=days)) as sample:
        waited: dict[str, list[Timing]] = {side: [] for side in _STORAGE}

        def engine(_: int) -> bench.Run:
            sample.empty(ENGINE)
            return sample.platform(ENGINE, "engine")

        def check() -> None:
            for side in _STORAGE:
                sample.check(ENGINE, side)

        def backfill(side: str) -> Callable[[int], bench.Run]:
            return lambda _: _backfill(sample, side, waited[side])

        sides: dict[str, Callable[[int], bench.Run]] = {ENGINE: engine}
        sides |= {side: backfill(side) for side in _STORAGE}
        runs = bench.alternate(sides, rounds, check=check)
    bench.print_runs(f"{days} days of {len(TABLES)} tables; backfills without the waits below", runs)
    _print_waits(waited)
    for side in _STORAGE:
        more = median(run.seconds for run in runs[side]) - median(run.seconds for run in runs[ENGINE])
        share_ms = 1000 * more / (len(TABLES) * days)
        bench.console.print(f"{_STORAGE[side]}: {share_ms:.0f} ms more per table and day than without Dagster.")
    what = f"backfill / engine, {days} days"
    goals = {side: bench.Goal(f"{what}, {_STORAGE[side]}", "<=", BOUND) for side in _STORAGE}
    return [goal.judge(bench.ratios(runs, side, ENGINE)) for side, goal in goals.items()]


def _backfill(sample: Sample, side: str, waited: list[Timing]) -> bench.Run:
    """A process that runs Dagster; its seconds are the backfill's."""
    run = sample.script(side, "benchmarks.daemon_backfill", *(("--postgres",) if side == POSTGRES else ()))
    waited.append(Timing(**bench.printed_json(run)[-1]))
    return replace(run, seconds=waited[-1].runs_s)


def _print_waits(waited: dict[str, list[Timing]]) -> None:
    """What the daemon adds, whatever the size of the backfill."""
    names = ("before_s", "runs_s", "after_s")
    rows = [
        (_STORAGE[side], *(f"{median(getattr(one, name) for one in timings):.1f}" for name in names), str(len(timings)))
        for side, timings in waited.items()
    ]
    headings = ("Dagster's storage", "from launch to first run", "runs", "from last run to completed", "rounds")
    bench.print_table("Median seconds of a backfill", headings, rows)


def main(
    quick: bench.Quick = False,
    json_path: bench.JsonPath = None,
    days: Annotated[int, typer.Option(min=2, max=YEAR_DAYS, help="Days of the backfill.")] = DAYS,
    rounds: bench.Rounds = 3,
) -> None:
    """Measure a backfill from the UI."""

    def measure(root: Path) -> list[bench.Outcome]:
        warm_up(root)
        return against_the_engine(root, QUICK_DAYS if quick else days, 1 if quick else rounds)

    bench.measured("A backfill from the UI", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
