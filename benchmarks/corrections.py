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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.corrected import Corrections, corrections, replace_by_copy, rewritten, scattered
from benchmarks.equality import Content, UnequalError, check_equal, table_content
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
from benchmarks.sqlmesh_project import GOLD, SILVER, Project, environment
from benchmarks.store_sales import STORE_SALES
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation
from platform_assets.planning.windows import Calendar
from platform_assets.settings import project_root

YEAR_DAYS = 366

COUNTS = (2, 10, 30)
REBUILT, EXPLAINED = 10, 10
PLATFORM, SQLMESH = "platform", "SQLMesh"
SQLMESH_SINGLY = "SQLMesh, plan by plan"
REBUILD, REBUILD_PLATFORM = "full rebuild, SQLMesh", "full rebuild, platform"
MODELS = {SILVER: SILVER_TRANSACTIONS, GOLD: STORE_SALES}

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


@dataclass
class Loaded:
    """Both sides with the calendar loaded, and what their runs did to it.

    Args:
        sample: what was landed.
        project: SQLMesh's.
        kept: folder with a copy of both as they were loaded.
        contents: rows of both models, by side, after its latest run.
        days: rewritten by its latest run, by side and model.
    """

    sample: Sample
    project: Project
    kept: Path
    contents: dict[str, dict[str, Content]] = field(default_factory=dict)
    days: dict[str, dict[str, set[date]]] = field(default_factory=dict)

    def tables(self, side: str) -> dict[str, Path]:
        """Where a side has the two models."""
        if side in (PLATFORM, REBUILD_PLATFORM):
            lake = self.sample.lake(PLATFORM)
            return {contract.name: lake / contract.name.replace(".", "/") for contract in MODELS.values()}
        return {contract.name: self.project.table(model) for model, contract in MODELS.items()}

    def platform(self, side: str, *command: str, case: Corrections | None = None, ingested: bool = False) -> Run:
        """One command of the platform on the loaded calendar, the corrections delivered.

        Args:
            side: its name.
            command: and its arguments.
            case: what is delivered.
            ingested: whether raw has it already, by a process before that does not count.
        """
        state = self.sample.state(PLATFORM)
        replace_by_copy(state, self.kept / PLATFORM)
        with _delivered(case, self.sample.landing), self._watched(side, state):
            if ingested:
                self.sample.module("benchmarks.ingest_only", PLATFORM)
            return self.sample.cli(PLATFORM, *command)

    def sqlmesh(self, side: str, command: Callable[[], Run], case: Corrections | None = None) -> Run:
        """One process of SQLMesh on the loaded calendar, the corrections in its raw table."""
        replace_by_copy(self.project.folder, self.kept / SQLMESH)
        if case:
            case.append_to(self.project.raw)
        with self._watched(side, self.project.folder):
            return command()

    def check(self) -> None:
        """Compare what all sides hold after a round.

        Raises:
            UnequalError: it is not the same.
        """
        first, *others = self.contents
        for other in others:
            check_equal(self.contents[first], self.contents[other], f"{first} and {other}")

    def check_loaded(self) -> None:
        """Compare both sides as they were loaded, and keep them.

        Raises:
            UnequalError: they do not hold the same rows.
        """
        self._look(PLATFORM)
        self._look(SQLMESH)
        self.check()
        replace_by_copy(self.kept / PLATFORM, self.sample.state(PLATFORM))
        replace_by_copy(self.kept / SQLMESH, self.project.folder)
        self.contents.clear()

    @contextmanager
    def _watched(self, side: str, state: Path) -> Iterator[None]:
        """Note what a run does to the models."""
        yield
        self._look(side)
        kept = self.kept / (PLATFORM if state == self.sample.state(PLATFORM) else SQLMESH)
        tables = self.tables(side)
        self.days[side] = {name: rewritten(kept / path.relative_to(state), path) for name, path in tables.items()}

    def _look(self, side: str) -> None:
        tables = self.tables(side)
        self.contents[side] = {one.name: table_content(tables[one.name], one) for one in MODELS.values()}


@contextmanager
def _delivered(case: Corrections | None, landing: Path) -> Iterator[None]:
    if case is None:
        yield
        return
    with case.landed(landing):
        yield


@contextmanager
def load(root: Path, plan: Plan) -> Iterator[Loaded]:
    """The sample loaded by both sides, equal."""
    program = environment(project_root() / ".platform" / "benchmarks" / "sqlmesh")
    settings = {"PLATFORM_DOMAINS": "benchmarks.store_sales"}
    with landed(root, Simulation(days=plan.days), settings) as sample:
        folder = sample.state(SQLMESH)
        first, last = sample.simulation.first, sample.simulation.last
        loaded = Loaded(
            sample, Project(program, folder, folder / "raw", sample.jars, first, last), sample.folder / "kept"
        )
        runs = {PLATFORM: [sample.cli(PLATFORM, "refresh")]}
        replace_by_copy(loaded.project.raw, sample.lake(PLATFORM) / RAW_TRANSACTIONS.name.replace(".", "/"))
        runs[SQLMESH] = [loaded.project.load()]
        loaded.check_loaded()
        print_runs(console, f"First load of {plan.days} days; the platform takes raw besides; no goal", runs)
        yield loaded


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
            with load(root, plan) as loaded:
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
