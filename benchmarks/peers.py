"""Corrections of a loaded year by two newer peers: DuckLake, a format of lakehouses, and SQLBuild, SQL models.

    uv run python -m benchmarks.peers [--days 366] [--rounds 3] [--peer ducklake|sqlbuild]

Cases: a few lines corrected on 2 days 300 days apart, and on 10 days scattered over the year; then the 10 days undone.
No goals: figures only, since the sides do not compute with the same engine. Every side is a whole process on a year
already loaded; its state is put back before every run, which does not count.

* The platform: `platform-assets refresh`, as in `benchmarks.corrections`, on Spark and Delta: from delivered files to
  checked, reconciled and explained days in one release. `rollback` undoes them.
* DuckLake, with DuckDB, and a script of ours (`benchmarks.ducklake_days`), since it keeps tables and has no models: it
  asks DuckLake's change feed for the days, computes both tables of them and writes them in one transaction. It undoes
  them by writing them once more as they were at the snapshot before. It checks nothing. Raw is corrected already.
* SQLBuild on DuckDB: `build` of both models over the one interval that holds all corrected days, which is what a build
  can name; and a build for each day, one after the other. Raw is corrected already, and somebody else told it the
  days. It checks nothing, though it can. It has nothing that undoes.

The models are those of SQLMesh (`benchmarks.models_sql`). Each peer is installed from PyPI into an environment of its
own. SQLBuild asks for Python 3.12, which uv finds, or downloads where it may.

Before any time counts, silver and gold of all sides must hold the same rows: their number, their money, a hash over
every column. Which days were rewritten is read from the Delta logs and from DuckLake's catalogue; a table of SQLBuild's
does not keep it, and what it was told is shown.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.corrected import corrections, scattered
from benchmarks.equality import UnequalError
from benchmarks.harness import BenchmarkError, Run, alternate, print_runs
from benchmarks.peer_sides import DUCKLAKE, PLATFORM, SQLBUILD, SQLBUILD_SINGLY, PeersLoaded, load_peers
from benchmarks.sample import warm_up
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar

YEAR_DAYS = 366
COUNTS = (2, 10)
UNDONE = 10

console = Console(width=None if sys.stdout.isatty() else 120)


class PeerName(StrEnum):
    """Whom the platform is compared with."""

    DUCKLAKE = "ducklake"
    SQLBUILD = "sqlbuild"


class Measured:
    """All cases on the loaded calendar."""

    def __init__(self, loaded: PeersLoaded, rounds: int) -> None:
        self.loaded, self.rounds = loaded, rounds
        calendar = Calendar(loaded.sample.simulation.first, loaded.sample.simulation.last)
        raw, silver = loaded.delta("raw.transactions"), loaded.delta(SILVER_TRANSACTIONS.name)
        self.cases = {count: corrections(f"{count} days", scattered(calendar, count), raw, silver) for count in COUNTS}
        self.rows: list[tuple[str, str, str]] = []

    def all(self) -> None:
        """Every case, printed."""
        for count in COUNTS:
            self.corrected(count)
        self.undone()
        table = Table(title="Days rewritten, silver and gold", title_justify="left")
        for heading in ("case", "side", "days"):
            table.add_column(heading)
        for row in self.rows:
            table.add_row(*row)
        console.print(table)

    def corrected(self, count: int) -> None:
        """The stale days mended by all sides."""
        case, loaded = self.cases[count], self.loaded
        first, last = case.days[0], case.days[-1]
        sides: dict[str, Callable[[int], Run]] = {PLATFORM: lambda _: loaded.refresh(case)}
        if DUCKLAKE in loaded.peers:
            sides[DUCKLAKE] = lambda _: loaded.ducklake_corrects(case)
        if SQLBUILD in loaded.peers:
            sides[SQLBUILD] = lambda _: loaded.sqlbuild_corrects(case)
            sides[SQLBUILD_SINGLY] = lambda _: loaded.sqlbuild_corrects(case, singly=True)
        self._alternate(f"{count} days in a range of {(last - first).days + 1}", sides)

    def undone(self) -> None:
        """The corrected days put back; SQLBuild has nothing that does."""
        case, loaded = self.cases[UNDONE], self.loaded
        sides: dict[str, Callable[[int], Run]] = {PLATFORM: lambda _: loaded.rollback(case)}
        if DUCKLAKE in loaded.peers:
            sides[DUCKLAKE] = lambda _: loaded.ducklake_undoes(case)
        self._alternate(f"{UNDONE} days undone", sides, loaded.check_as_loaded)

    def _alternate(
        self, what: str, sides: dict[str, Callable[[int], Run]], check: Callable[[], None] | None = None
    ) -> None:
        """All sides by turns; equal after every round."""
        loaded = self.loaded
        loaded.contents.clear()
        print_runs(console, what, alternate(sides, self.rounds, float("inf"), check or loaded.check))
        self.rows += [(what, side, _counted(loaded.days[side])) for side in sides]


def _counted(days: dict[str, set[date]] | str) -> str:
    return days if isinstance(days, str) else ", ".join(str(len(found)) for found in days.values())


def main(
    days: Annotated[int, typer.Option(min=31, max=YEAR_DAYS, help="Days of sales.")] = YEAR_DAYS,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of alternating sides.")] = 3,
    peer: Annotated[list[PeerName] | None, typer.Option("--peer", help="Only this one; both by default.")] = None,
) -> None:
    """Measure corrections. Exits with 3 if nothing could be measured, or sides differ."""
    names = [one.value for one in peer or PeerName]
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        try:
            warm_up(root)
            with load_peers(root, days, names, console) as loaded:
                Measured(loaded, rounds).all()
        except (BenchmarkError, UnequalError) as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error


if __name__ == "__main__":
    typer.run(main)
