"""Silver and gold computed again, by Spark, by Sail and by DuckDB: the same deliveries, loaded before.

    uv run python benchmarks/engines.py [--quick] [--json PATH] [--days 366] [--scale 5] [--rounds 3]

The sample is landed and loaded once by Spark, and once by `bare_duckdb.py`; every table is admitted to Sail (`engine
verify`). Then the sides in turn compute every day of silver and gold again, whole processes each: the platform by
either engine (`refresh --force`) with all gates, digests and the publication, DuckDB without any of them, as plain
Parquet. After every round each day must have the digest that it had, and DuckDB's tables the same rows.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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
from platform_assets_tests.support.published import digests_of

MONTH_DAYS, YEAR_DAYS = 30, 366
SIDE = "platform"
SPARK, SAIL, DUCKDB = "Spark", "Sail", "DuckDB"
LAYERS = ("silver", "gold")
COMPUTED = tuple(contract.name for contract in TABLES if contract.layer in LAYERS)
SHARE_OF_SPARK = 0.35
TIMES_DUCKDB = 2.0

console = Console(width=None if sys.stdout.isatty() else 120)


def compared(root: Path, simulation: Simulation, rounds: int) -> list[Outcome]:
    """Load once, admit every table, then compute all of it again by each side in turn."""
    what = f"{simulation.days} days, scale factor {simulation.scale}"
    with landed(root, simulation) as sample:
        sample.cli(SIDE, "refresh")
        sample.script(DUCKDB, "benchmarks.bare_duckdb")
        sample.check(SIDE, DUCKDB)
        admitted = [sample.cli(SIDE, "engine", "verify", table) for table in COMPUTED]
        if refused := [
            run.printed for run in admitted if "admitted" not in run.printed or "not admitted" in run.printed
        ]:
            raise BenchmarkError(f"A table is not admitted to Sail:\n{refused[0]}")
        expected = digests_of(str(sample.lake(SIDE)))

        def check() -> None:
            if digests_of(str(sample.lake(SIDE))) != expected:
                raise UnequalError("The digests of a round are not those of the load.")
            sample.check(SIDE, DUCKDB)

        sides = {
            SPARK: partial(_forced, _by(sample, SPARK)),
            SAIL: partial(_forced, _by(sample, SAIL)),
            DUCKDB: partial(_by_duckdb, sample),
        }
        runs = alternate(sides, rounds, float("inf"), check)
    print_runs(console, f"Silver and gold of {what}, computed again", runs)
    cpu = [sail.cpu_s / spark.cpu_s for sail, spark in zip(runs[SAIL], runs[SPARK], strict=True)]
    return [
        Goal(f"Sail / Spark, {what}", "<=", SHARE_OF_SPARK).judge(ratios(runs, SAIL, SPARK)),
        Goal(f"Sail / Spark, {what}, processor time", "<=", SHARE_OF_SPARK).judge(cpu),
        Goal(f"Sail / DuckDB, {what}", "<=", TIMES_DUCKDB).judge(ratios(runs, SAIL, DUCKDB)),
    ]


def _by(sample: Sample, engine: str) -> Sample:
    return replace(sample, settings={**sample.settings, "PLATFORM_ENGINE": engine.lower()})


def _forced(sample: Sample, number: int) -> Run:
    first, last = sample.simulation.first, sample.simulation.last
    return sample.cli(SIDE, "refresh", *COMPUTED, "--days", f"{first}..{last}", "--force")


def _by_duckdb(sample: Sample, number: int) -> Run:
    lake = sample.lake(DUCKDB)
    for layer in (*LAYERS, "quarantine"):
        shutil.rmtree(lake / layer)
    where = ("--landing", sample.landing, "--lake", lake, "--layers", *LAYERS)
    days = ("--first", sample.simulation.first, "--last", sample.simulation.last)
    return sample.module("benchmarks.bare_duckdb", DUCKDB, *where, *days)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="30 days alone, one round.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there.")] = None,
    days: Annotated[int, typer.Option(min=2, max=YEAR_DAYS, help="Days of the longer comparison.")] = YEAR_DAYS,
    scale: Annotated[int, typer.Option(min=1, help="Times as many lines a day; 5 make 7.3 million a year.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Of each comparison.")] = 3,
) -> None:
    """Compare the two engines with each other and with DuckDB."""
    samples = [
        Simulation(days=length, scale=scale) for length in ([MONTH_DAYS] if quick else sorted({MONTH_DAYS, days}))
    ]
    with tempfile.TemporaryDirectory(prefix="engines-") as name:
        root = Path(name)
        try:
            warm_up(root)
            outcomes = [outcome for each in samples for outcome in compared(root, each, 1 if quick else rounds)]
        except (BenchmarkError, UnequalError) as error:
            console.print(f"[red]{error}[/]")
            raise typer.Exit(2) from error
    print_outcomes(console, "Goals", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
