"""Silver and gold computed again, by Spark, by Sail and by DuckDB: the same deliveries, loaded before.

    uv run python benchmarks/engines.py [--quick] [--json PATH] [--days 366] [--scale 5] [--rounds 3]

The sample is landed and loaded once by Spark, and once by `bare_duckdb.py`. Every table with a function is admitted to
Sail (`admin verify --admit`); queries are Spark's alone. Then the sides in turn compute every day of these tables
again, whole processes each: the platform by either engine (`refresh --force`) with all gates, digests and the
publication, DuckDB all tables without any of them, as plain Parquet. After every round each day must have the digest
that it had, and DuckDB's tables the same rows.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import harness as bench
from benchmarks.equality import UnequalError
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation
from platform_assets.domains.retail.transforms import gold, silver
from platform_assets_tests.support.places import digests_of

MONTH_DAYS, YEAR_DAYS = 30, 366
SIDE = "platform"
SPARK, SAIL, DUCKDB = "Spark", "Sail", "DuckDB"
LAYERS = {"silver": silver, "gold": gold}
COMPUTED = tuple(contract.name for contract in TABLES if hasattr(LAYERS.get(contract.layer), contract.table))
SHARE_OF_SPARK = 0.35
TIMES_DUCKDB = 2.0


def compared(root: Path, simulation: Simulation, rounds: int) -> list[bench.Outcome]:
    """Load once, admit every table, then compute all of it again by each side in turn."""
    what = f"{simulation.days} days, scale factor {simulation.scale}"
    with landed(root, simulation) as sample:
        sample.cli(SIDE, "refresh")
        sample.script(DUCKDB, "benchmarks.bare_duckdb")
        sample.check(SIDE, DUCKDB)
        admitted = [sample.cli(SIDE, "admin", "verify", "--admit", table) for table in COMPUTED]
        if refused := [
            run.printed for run in admitted if "admitted" not in run.printed or "not admitted" in run.printed
        ]:
            raise bench.BenchmarkError(f"A table is not admitted to Sail:\n{refused[0]}")
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
        runs = bench.alternate(sides, rounds, check=check)
    bench.print_runs(f"Silver and gold of {what}, computed again", runs)
    cpu = [sail.cpu_s / spark.cpu_s for sail, spark in zip(runs[SAIL], runs[SPARK], strict=True)]
    return [
        bench.Goal(f"Sail / Spark, {what}", "<=", SHARE_OF_SPARK).judge(bench.ratios(runs, SAIL, SPARK)),
        bench.Goal(f"Sail / Spark, {what}, processor time", "<=", SHARE_OF_SPARK).judge(cpu),
        bench.Goal(f"Sail / DuckDB, {what}", "<=", TIMES_DUCKDB).judge(bench.ratios(runs, SAIL, DUCKDB)),
    ]


def _by(sample: Sample, engine: str) -> Sample:
    return replace(sample, settings={**sample.settings, "PLATFORM_ENGINE": engine.lower()})


def _forced(sample: Sample, number: int) -> bench.Run:
    first, last = sample.simulation.first, sample.simulation.last
    return sample.cli(SIDE, "refresh", *COMPUTED, "--days", f"{first}..{last}", "--force")


def _by_duckdb(sample: Sample, number: int) -> bench.Run:
    lake = sample.lake(DUCKDB)
    for layer in (*LAYERS, "quarantine"):
        shutil.rmtree(lake / layer)
    where = ("--landing", sample.landing, "--lake", lake, "--layers", *LAYERS)
    days = ("--first", sample.simulation.first, "--last", sample.simulation.last)
    return sample.module("benchmarks.bare_duckdb", DUCKDB, *where, *days)


def main(
    quick: bench.Quick = False,
    json_path: bench.JsonPath = None,
    days: Annotated[int, typer.Option(min=2, max=YEAR_DAYS, help="Days of the longer comparison.")] = YEAR_DAYS,
    scale: Annotated[int, typer.Option(min=1, help="Times as many lines a day; 5 make 7.3 million a year.")] = 5,
    rounds: bench.Rounds = 3,
) -> None:
    """Compare the two engines with each other and with DuckDB; quickly on 30 days alone, in one round."""

    def measure(root: Path) -> list[bench.Outcome]:
        warm_up(root)
        lengths = [MONTH_DAYS] if quick else sorted({MONTH_DAYS, days})
        samples = [Simulation(days=length, scale=scale) for length in lengths]
        return [outcome for each in samples for outcome in compared(root, each, 1 if quick else rounds)]

    bench.measured("Goals", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
