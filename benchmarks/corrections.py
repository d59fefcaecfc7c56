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
* Full rebuild of the 10 days' case: every day of both models, by SQLMesh; without `--quick` also by the platform
  (`refresh --force`).

Before any time counts, silver and gold of all sides must hold the same rows: their number, their money, a hash over
every column. Which days were rewritten is read from the Delta logs, not from what a side says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import harness as bench
from benchmarks.corrected import corrections, scattered
from benchmarks.loaded_sides import MODELS, PLATFORM, REBUILD, REBUILD_PLATFORM, SQLMESH, Loaded, load
from benchmarks.sample import warm_up
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar

YEAR_DAYS = 366

COUNTS = (2, 10, 30)
REBUILT, EXPLAINED = 10, 10


class Measured:
    """All cases on the loaded calendar, and what came of the goals."""

    def __init__(self, loaded: Loaded, rounds: int, *, rebuild_platform: bool) -> None:
        self.loaded, self.rounds, self.rebuild_platform = loaded, rounds, rebuild_platform
        self.calendar = Calendar(loaded.sample.simulation.first, loaded.sample.simulation.last)
        tables = loaded.tables(PLATFORM)
        raw = loaded.project.raw
        self.cases = {
            count: corrections(f"{count} days", scattered(self.calendar, count), raw, tables[SILVER_TRANSACTIONS.name])
            for count in COUNTS
        }
        self.rows: list[tuple[str, str, int, dict[str, set[date]]]] = []
        self.wrong = 0

    def outcomes(self) -> list[bench.Outcome]:
        """Every case, and every goal."""
        found = [outcome for count in COUNTS for outcome in self.corrected(count)]
        found += [self.nothing(), self.explain()]
        self.print_days()
        goal = bench.Goal("days rewritten though not stale, or stale and not rewritten", "<=", 0)
        return [*found, goal.judge([self.wrong])]

    def corrected(self, count: int) -> list[bench.Outcome]:
        """The stale days mended by all sides."""
        case, loaded, project = self.cases[count], self.loaded, self.loaded.project
        first, last = case.days[0], case.days[-1]
        everything = self.calendar.first, self.calendar.last
        sides: dict[str, Callable[[int], bench.Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh", case=case),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, lambda: project.restate(first, last), case),
        }
        if count == REBUILT:
            sides[REBUILD] = lambda _: loaded.sqlmesh(REBUILD, lambda: project.restate(*everything), case)
        if count == REBUILT and self.rebuild_platform:
            command = ("refresh", "--force", "--days", "..".join(map(str, everything)))
            sides[REBUILD_PLATFORM] = lambda _: loaded.platform(REBUILD_PLATFORM, *command, case=case)
        what = f"{count} days in a range of {(last - first).days + 1}"
        runs = self._alternate(what, sides, set(case.days))
        if count == COUNTS[0]:
            goal = bench.Goal(f"{what}: platform / SQLMesh", "<=", 0.35)
            return [goal.judge(bench.ratios(runs, PLATFORM, SQLMESH))]
        return [
            bench.Goal(f"{count} days: platform / {side}", "<=", 0.4).judge(bench.ratios(runs, PLATFORM, side))
            for side in (REBUILD, REBUILD_PLATFORM)
            if side in runs
        ]

    def nothing(self) -> bench.Outcome:
        """Everything is up to date."""
        loaded = self.loaded
        sides: dict[str, Callable[[int], bench.Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh"),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, loaded.project.run),
        }
        runs = self._alternate("nothing to do", sides, set())
        return bench.Goal("nothing to do: platform / SQLMesh", "<=", 0.15).judge(bench.ratios(runs, PLATFORM, SQLMESH))

    def explain(self) -> bench.Outcome:
        """What would be done, without doing it."""
        loaded, case = self.loaded, self.cases[EXPLAINED]
        range_ = case.days[0], case.days[-1]
        sides: dict[str, Callable[[int], bench.Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "refresh", "--explain", case=case, ingested=True),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, lambda: loaded.project.restate(*range_, explain=True), case),
        }
        runs = self._alternate(f"explain {EXPLAINED} days", sides, set())
        return bench.Goal("explain: platform / SQLMesh", "<=", 0.15).judge(bench.ratios(runs, PLATFORM, SQLMESH))

    def print_days(self) -> None:
        """How many days each side rewrote, by the Delta logs."""
        models = [contract.name for contract in MODELS.values()]
        rows = [
            (what, side, str(stale), *(str(len(days[name])) for name in models))
            for what, side, stale, days in self.rows
        ]
        bench.print_table("Days rewritten", ("case", "side", "stale", *models), rows, left=2)

    def _alternate(
        self, what: str, sides: Mapping[str, Callable[[int], bench.Run]], stale: set[date]
    ) -> dict[str, list[bench.Run]]:
        """All sides by turns; equal after every round, and only stale days rewritten by the platform."""
        loaded = self.loaded

        def check() -> None:
            loaded.check()
            self.wrong += sum(len(days ^ stale) for days in loaded.days[PLATFORM].values())

        loaded.contents.clear()
        runs = bench.alternate(sides, self.rounds, check=check)
        bench.print_runs(what, runs)
        self.rows += [(what, side, len(stale), loaded.days[side]) for side in sides]
        return runs


def main(
    quick: bench.Quick = False,
    json_path: bench.JsonPath = None,
    days: Annotated[int, typer.Option(min=31, max=YEAR_DAYS, help="Days of sales.")] = YEAR_DAYS,
    rounds: bench.Rounds = 3,
) -> None:
    """Measure corrections; quickly on the year too, since only that has days 300 days apart, but in one round."""

    def measure(root: Path) -> list[bench.Outcome]:
        warm_up(root)
        with load(root, YEAR_DAYS if quick else days) as loaded:
            return Measured(loaded, 1 if quick else rounds, rebuild_platform=not quick).outcomes()

    bench.measured("Corrections", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
