"""DuckLake and SQLBuild with the same two models: each in an environment of its own, with tables of its own."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corrected import Corrections
from benchmarks.environments import environment
from benchmarks.harness import Run, run_command
from benchmarks.models_sql import gold_sql, silver_sql
from platform_assets.settings import project_root

SILVER, GOLD = "shop.silver_transactions", "shop.store_sales"

_MODEL = """\
MODEL (
  description "{description}",
  materialized incremental,
  incremental_strategy delete_insert,
  cursor event_date,
  cursor_type timestamp,
  cursor_grain day,
);
"""
_CURSOR = "event_date >= __cursor_start() AND event_date < __cursor_end()"
_PROJECT = """\
name = "shop"
adapter = "duckdb"
default_target = "main"

[connections.local]
database = "warehouse.duckdb"

[connections.local.settings]
TimeZone = "UTC"

[targets.main]
connection = "local"
schema = "shop"
"""
_SOURCES = """\
sources:
  - name: raw_transactions
    description: Till lines as delivered
    schema: raw
    table: transactions
"""


@dataclass(frozen=True)
class Peer(ABC):
    """What a peer keeps, and how it is told to compute.

    Args:
        programs: folder of the programs of its environment.
        folder: of all that it keeps; a copy of it is a copy of its state.
    """

    programs: Path
    folder: Path
    pins: ClassVar[tuple[str, ...]]
    python: ClassVar[str]

    @classmethod
    def installed(cls, name: str, folder: Path) -> Peer:
        """A peer that keeps nothing yet, in its own environment, installed unless it is there already.

        Raises:
            BenchmarkError: it cannot be installed; the message has uv's last words.
        """
        kept = project_root() / ".platform" / "benchmarks" / name.lower()
        return cls(environment(kept, cls.pins, cls.python), folder)

    def fill(self, files: Sequence[str]) -> Run:
        """Raw, from the files of a Delta table; then the models of all days, whose time this is."""
        self.folder.mkdir(parents=True)
        self.describe()
        listed = self.folder / "files.json"
        listed.write_text(json.dumps(list(files)), encoding="utf-8")
        self.tables("load", listed)
        return self.create()

    def append(self, case: Corrections) -> None:
        """Corrected lines into raw."""
        lines = self.folder / "lines.parquet"
        pq.write_table(pa.concat_tables(case.lines.values()), lines)
        self.tables("append", lines)

    def tables(self, what: str, given: Path) -> Run:
        """One of `benchmarks.peer_tables`."""
        return self.module("benchmarks.peer_tables", what, given)

    def module(self, module: str, *arguments: object) -> Run:
        """A module of the benchmarks that needs nothing but what the environment has."""
        return self.run(self.programs / "python", "-m", module, self.folder, *arguments)

    def run(self, *command: object) -> Run:
        """A process of the peer, in its folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")}
        log = self.folder.with_name(f"{self.folder.name}.log")
        return run_command(command, env=kept | {"PYTHONPATH": str(project_root())}, log=log)

    @abstractmethod
    def describe(self) -> None:
        """Write down the models."""

    @abstractmethod
    def create(self) -> Run:
        """Compute them of all days."""


class DuckLake(Peer):
    """Tables in Parquet with a catalogue in a DuckDB file, and a script: it has no models."""

    pins = ("duckdb==1.5.5", "duckdb-extension-ducklake==1.5.5")
    python = "3.11"

    def describe(self) -> None:
        """The queries, for the script."""
        queries = {SILVER: silver_sql("raw.transactions", "{days}"), GOLD: gold_sql(SILVER, "{days}")}
        (self.folder / "models.json").write_text(json.dumps(queries), encoding="utf-8")

    def create(self) -> Run:
        """All days in one transaction."""
        return self.module("benchmarks.ducklake_days", "create")

    def correct(self) -> Run:
        """The days that its change feed names, of both tables in one transaction."""
        return self.module("benchmarks.ducklake_days", "correct")

    def undo(self) -> Run:
        """The days corrected last, of both tables in one transaction."""
        return self.module("benchmarks.ducklake_days", "undo")

    def written(self) -> dict[str, set[date]]:
        """Days that the latest snapshot wrote, by contract, by the catalogue."""
        printed = self.module("benchmarks.ducklake_days", "written").printed
        return {name: {*map(date.fromisoformat, days)} for name, days in json.loads(printed).items()}


class SQLBuild(Peer):
    """Models in a DuckDB file, built for one interval at a time."""

    pins = ("sqlbuild==0.183.0", "duckdb==2.0.1")
    python = "3.12"

    def describe(self) -> None:
        """Its project."""
        for name in ("models", "sources"):
            (self.folder / name).mkdir()
        files = {
            "sqlbuild_project.toml": _PROJECT,
            "sources/raw.yml": _SOURCES,
            "models/silver_transactions.sql": _MODEL.format(description="Till lines")
            + silver_sql('__source("raw_transactions")', _CURSOR),
            "models/store_sales.sql": _MODEL.format(description="Sales by store")
            + gold_sql('__ref("silver_transactions")', _CURSOR),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def create(self) -> Run:
        """The first build, which takes all that there is."""
        return self._builds(("",))

    def correct(self, first: date, last: date) -> Run:
        """Both models over one interval, which is what a build can name."""
        return self._builds((_interval(first, last),))

    def correct_singly(self, days: Sequence[date]) -> Run:
        """One build after another, each of one day."""
        return self._builds([_interval(day, day) for day in days])

    def nothing(self) -> Run:
        """What a scheduler starts every day."""
        return self._builds(("",))

    def _builds(self, intervals: Sequence[str]) -> Run:
        build = f"'{self.programs / 'sqb'}' --project-dir '{self.folder}' --no-color build"
        return self.run("sh", "-ec", "\n".join(f"{build} {interval}" for interval in intervals))


def _interval(first: date, last: date) -> str:
    return f"--start-cursor-ts {first} --end-cursor-ts {last + timedelta(days=1)}"
