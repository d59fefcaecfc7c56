"""Both sides of corrections with the calendar loaded, put back before every run, and what a run did to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from benchmarks.corrected import Corrections, replace_by_copy, rewritten
from benchmarks.equality import Content, check_equal, table_content
from benchmarks.harness import Run, print_runs
from benchmarks.sample import Sample, landed
from benchmarks.sqlmesh_project import GOLD, SILVER, Project, installed
from benchmarks.store_sales import STORE_SALES
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation

PLATFORM, SQLMESH = "platform", "SQLMesh"
REBUILD, REBUILD_PLATFORM = "full rebuild, SQLMesh", "full rebuild, platform"
MODELS = {SILVER: SILVER_TRANSACTIONS, GOLD: STORE_SALES}


@dataclass
class Loaded:
    """Both sides with the calendar loaded, a copy of both, and by side rows and rewritten days of its latest run."""

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
        """One command of the platform, the corrections delivered, and in raw already if a process before took them."""
        state = self.sample.state(PLATFORM)
        replace_by_copy(state, self.kept / PLATFORM)
        delivered = case.landed(self.sample.landing) if case else nullcontext()
        with delivered, self._watched(side, state):
            if ingested:
                self.sample.platform(PLATFORM, "ingest")
            return self.sample.cli(PLATFORM, *command)

    def sqlmesh(self, side: str, command: Callable[[], Run], case: Corrections | None = None) -> Run:
        """One process of SQLMesh on the loaded calendar, the corrections in its raw table."""
        replace_by_copy(self.project.folder, self.kept / SQLMESH)
        if case:
            case.append_to(self.project.raw)
        with self._watched(side, self.project.folder):
            return command()

    def check(self) -> None:
        """Compare what all sides hold after a round."""
        first, *others = self.contents
        for other in others:
            check_equal(self.contents[first], self.contents[other], f"{first} and {other}")

    def check_loaded(self) -> None:
        """Compare both sides as they were loaded, and keep them."""
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
def load(root: Path, days: int) -> Iterator[Loaded]:
    """The first days of the sample loaded by both sides, equal."""
    program = installed()
    settings = {"PLATFORM_DOMAINS": "benchmarks.store_sales"}
    with landed(root, Simulation(days=days), settings) as sample:
        folder = sample.state(SQLMESH)
        first, last = sample.simulation.first, sample.simulation.last
        loaded = Loaded(
            sample, Project(program, folder, folder / "raw", sample.jars, first, last), sample.folder / "kept"
        )
        runs = {PLATFORM: [sample.cli(PLATFORM, "refresh")]}
        replace_by_copy(loaded.project.raw, sample.lake(PLATFORM) / RAW_TRANSACTIONS.name.replace(".", "/"))
        runs[SQLMESH] = [loaded.project.load()]
        loaded.check_loaded()
        print_runs(f"First load of {days} days; the platform takes raw besides; no goal", runs)
        yield loaded
