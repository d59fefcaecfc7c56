"""Landed files that all sides of a benchmark read, and the processes that read them."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.equality import check_equal, contents
from benchmarks.harness import BenchmarkError, Run, run_command
from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.jars import class_archive
from platform_assets.spark.session.java import find_java

_ARCHIVE_WITHIN_S = 120


@dataclass(frozen=True)
class Sample:
    """A landed sample, the folder of its landing area and of every side's state, Delta's jars, and more settings."""

    simulation: Simulation
    folder: Path
    jars: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def landing(self) -> Path:
        """The landing area that all sides read."""
        return self.folder / "landing"

    def state(self, side: str) -> Path:
        """The folder of all that a side keeps."""
        return self.folder / side.replace(" ", "-")

    def lake(self, side: str) -> Path:
        """The lake of a side."""
        return self.state(side) / "lake"

    def empty(self, side: str) -> None:
        """Remove what a side did before."""
        shutil.rmtree(self.state(side), ignore_errors=True)

    def platform(self, side: str, *arguments: object) -> Run:
        """One process of the platform, on the side's lake as it is."""
        return self.module("benchmarks.platform_load", side, *arguments)

    def script(self, side: str, module: str, *more: str) -> Run:
        """One process of a script that loads everything without the platform, into an empty lake."""
        self.empty(side)
        where = ("--landing", self.landing, "--lake", self.lake(side), *more)
        return self.module(module, side, *where, "--first", self.simulation.first, "--last", self.simulation.last)

    def check(self, side: str, other: str) -> None:
        """Compare what two sides hold."""
        check_equal(contents(self.lake(side)), contents(self.lake(other)), f"{side} and {other}")

    def cli(self, side: str, *arguments: object) -> Run:
        """One process of the platform's command line, on the side's lake as it is."""
        program = Path(sys.executable).with_name("platform-assets")
        # 1: done, and something needs a look, here the rows that the sample has for it
        return self._run(side, program, *arguments, done=(0, 1))

    def module(self, module: str, side: str, *arguments: object) -> Run:
        """One process of a Python module that finds its settings in its environment, on the side's lake as it is."""
        return self._run(side, sys.executable, "-m", module, *arguments)

    def _run(self, side: str, *command: object, done: tuple[int, ...] = (0,)) -> Run:
        """Settings come from here and from nowhere else."""
        state = self.state(side)
        state.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLATFORM_", "DAGSTER_"))}
        own = {
            "PYTHONPATH": str(project_root()),
            "PLATFORM_STATE": str(state),
            "PLATFORM_LANDING": str(self.landing),
            "PLATFORM_JARS": str(self.jars),
            "PLATFORM_CALENDAR_FIRST": str(self.simulation.first),
            "PLATFORM_CALENDAR_LAST": str(self.simulation.last),
            "PLATFORM_TODAY": str(self.simulation.last_arrival),
        }
        env = kept | own | dict(self.settings)
        return run_command(command, env=env, log=state / "benchmark.log", done=done)


@contextmanager
def landed(root: Path, simulation: Simulation, settings: Mapping[str, str] | None = None) -> Iterator[Sample]:
    """Land a sample with all its late arrivals; it and everything made of it are gone afterwards."""
    folder = root / f"{simulation.days}-days-x{simulation.scale}"
    sample = Sample(simulation, folder, load_settings().jars, settings or {})
    try:
        land(simulation, sample.landing, simulation.last_arrival)
        yield sample
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def warm_up(root: Path) -> None:
    """Have what a first session makes once, Delta's jars and the class archive, so that all starts are alike."""
    settings, java = load_settings(), find_java()
    if class_archive(settings, java, record=False).file.is_file():
        return
    Sample(Simulation(days=1), root / "warm-up", settings.jars).platform("session", "start")
    deadline = time.monotonic() + _ARCHIVE_WITHIN_S
    while not class_archive(settings, java, record=False).file.is_file():  # its JVM writes it after the process ended
        if time.monotonic() > deadline:
            raise BenchmarkError(f"No class archive appeared in {settings.jars}.")
        time.sleep(1)
