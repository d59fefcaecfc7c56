"""Corrections of a loaded year: the days that matter, against one range restated and against everything rebuilt.

    uv run python benchmarks/corrections.py [--quick] [--json PATH] [--days 366] [--rounds 3]

Cases: a few lines corrected on 2 days 300 days apart, on 10 and on 30 days scattered over the year; nothing to do; and
explain, of the 10 days when raw has them already, without doing anything. Every side is a whole process on a year
already loaded; its state is put back before every run, which does not count.

* The platform: `platform-assets refresh`, with a catalogue of three tables (`benchmarks.store_sales`). It finds the
  delivered files, parses them, looks their keys up in the other days of raw, appends them, recomputes the stale days of
  silver and gold, checks, hashes and reconciles what it staged, explains and publishes it.
* SQLMesh, installed from PyPI into an environment of its own, with the same two models of silver and gold on the same
  Spark, Delta and session settings (`benchmarks.sqlmesh_project`): `plan --restate-model` over the one range that holds
  all corrected days, since a plan has one start and one end; `run` for nothing to do; `plan --explain`. Its raw table
  has the corrections already, and somebody else told it the range: it neither ingests nor finds out. It checks nothing.
  It starts without the class archive, which is the platform's own. Its JVM outlives it for a moment: neither that time
  nor the JVM's processor time is in its figures.
* SQLMesh, plan by plan, of the 2 days' case, without a goal: each day restated on its own, by a script in one process.
* Full rebuild of the 10 days' case: every day of both models, by SQLMesh; without `--quick` also by the platform
  (`refresh --force`).

Before any time counts, silver and gold of all sides must hold the same rows: their number, their money, a hash over
every column. Which days were rewritten is read from the Delta logs, not from what a side says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.corrected import corrections, scattered
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
from benchmarks.loaded_sides import MODELS, PLATFORM, REBUILD, REBUILD_PLATFORM, SQLMESH, Loaded, load
from benchmarks.sample import warm_up
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar

YEAR_DAYS = 366

COUNTS = (2, 10, 30)
REBUILT, EXPLAINED = 10, 10

SQLMESH_SINGLY = "SQLMesh, plan by plan"

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        days: of the loaded calendar.
        rounds: of each case.
        rebuild_platform: whether the platform rebuilds everything too.
    """

    days: int
    rounds: int
    rebuild_platform: bool

    @classmethod
    def quick(cls) -> Plan:
        """What fits into a quarter of an hour: the year, since only that has days 300 days apart, but one round."""
        return cls(YEAR_DAYS, 1, rebuild_platform=False)


class Measured:
    """All cases on the loaded calendar, and what came of the goals."""

    def __init__(self, loaded: Loaded, plan: Plan) -> None:
        self.loaded, self.plan = loaded, plan
        self.calendar = Calendar(loaded.sample.simulation.first, loaded.sample.simulation.last)
        tables = loaded.tables(PLATFORM)
        raw = loaded.project.raw
        self.cases = {
            count: corrections(f"{count} days", scattered(self.calendar, count), raw, tables[SILVER_TRANSACTIONS.name])
            for count in COUNTS
        }
        self.rows: list[tuple[str, str, int, dict[str, set[date]]]] = []
        self.wrong = 0

    def outcomes(self) -> list[Outcome]:
        """Every case, and every goal."""
        found = [outcome for count in COUNTS for outcome in self.corrected(count)]
        found += [self.nothing(), self.explain()]
        self.print_days()
        goal = Goal("days rewritten though not stale, or stale and not rewritten", "<=", 0)
        return [*found, goal.judge([self.wrong])]

    def corrected(self, count: int) -> list[Outcome]:
        """The stale days mended by all sides."""
        case, loaded, project = self.cases[count], self.loaded, self.loaded.project
        first, last = case.days[0], case.days[-1]
        everything = self.calendar.first, self.calendar.last
        sides: dict[str, Callable[[int], Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh", case=case),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, lambda: project.restate(first, last), case),
        }
        if count == COUNTS[0]:
            sides[SQLMESH_SINGLY] = lambda _: loaded.sqlmesh(
                SQLMESH_SINGLY, lambda: project.restate_singly(case.days), case
            )
        if count == REBUILT:
            sides[REBUILD] = lambda _: loaded.sqlmesh(REBUILD, lambda: project.restate(*everything), case)
        if count == REBUILT and self.plan.rebuild_platform:
            command = ("refresh", "--force", "--days", "..".join(map(str, everything)))
            sides[REBUILD_PLATFORM] = lambda _: loaded.platform(REBUILD_PLATFORM, *command, case=case)
        what = f"{count} days in a range of {(last - first).days + 1}"
        runs = self._alternate(what, sides, set(case.days))
        if count == COUNTS[0]:
            goal = Goal(f"{what}: platform / SQLMesh", "<=", 0.35)
            return [goal.judge(ratios(runs, PLATFORM, SQLMESH))]
        return [
            Goal(f"{count} days: platform / {side}", "<=", 0.4).judge(ratios(runs, PLATFORM, side))
            for side in (REBUILD, REBUILD_PLATFORM)
            if side in runs
        ]

    def nothing(self) -> Outcome:
        """Everything is up to date."""
        loaded = self.loaded
        sides: dict[str, Callable[[int], Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh"),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, loaded.project.run),
        }
        runs = self._alternate("nothing to do", sides, set())
        return Goal("nothing to do: platform / SQLMesh", "<=", 0.15).judge(ratios(runs, PLATFORM, SQLMESH))

    def explain(self) -> Outcome:
        """What would be done, without doing it."""
        loaded, case = self.loaded, self.cases[EXPLAINED]
        range_ = case.days[0], case.days[-1]
        sides: dict[str, Callable[[int], Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh", "--explain", case=case, ingested=True),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, lambda: loaded.project.restate(*range_, explain=True), case),
        }
        runs = self._alternate(f"explain {EXPLAINED} days", sides, set())
        return Goal("explain: platform / SQLMesh", "<=", 0.15).judge(ratios(runs, PLATFORM, SQLMESH))

    def print_days(self) -> None:
        """How many days each side rewrote, by the Delta logs."""
        table = Table(title="Days rewritten", title_justify="left")
        for heading in ("case", "side"):
            table.add_column(heading)
        for heading in ("stale", *(contract.name for contract in MODELS.values())):
            table.add_column(heading, justify="right")
        for what, side, stale, days in self.rows:
            table.add_row(what, side, str(stale), *(str(len(days[one.name])) for one in MODELS.values()))
        console.print(table)

    def _alternate(
        self, what: str, sides: Mapping[str, Callable[[int], Run]], stale: set[date]
    ) -> dict[str, list[Run]]:
        """All sides by turns; equal after every round, and only stale days rewritten by the platform."""
        loaded = self.loaded

        def check() -> None:
            loaded.check()
            self.wrong += sum(len(days ^ stale) for days in loaded.days[PLATFORM].values())

        loaded.contents.clear()
        runs = alternate(sides, self.plan.rounds, float("inf"), check)
        print_runs(console, what, runs)
        self.rows += [(what, side, len(stale), loaded.days[side]) for side in sides]
        return runs


def main(
    quick: Annotated[bool, typer.Option("--quick", help="At most a quarter of an hour.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
    days: Annotated[int, typer.Option(min=31, max=YEAR_DAYS, help="Days of sales.")] = YEAR_DAYS,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of alternating sides.")] = 3,
) -> None:
    """Measure corrections. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    plan = Plan.quick() if quick else Plan(days, rounds, rebuild_platform=True)
    with tempfile.TemporaryDirectory(prefix="corrections-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        try:
            warm_up(root)
            with load(root, plan.days, console) as loaded:
                outcomes = Measured(loaded, plan).outcomes()
        except (BenchmarkError, UnequalError) as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error
    print_outcomes(console, "Corrections", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


if __name__ == "__main__":
    typer.run(main)
