"""The first load: a year of landed files to gold, against what the same work costs without the platform.

    uv run python benchmarks/first_load.py [--quick] [--json PATH] [--days 366] [--scale 5] [--rounds 3]

Every side is a whole process that starts from the same landed files, late arrivals included, and an empty lake:

* the platform: `refresh` in one process, without Dagster;
* bare Spark: `bare_spark.py`, the same tables by hand on the same session settings;
* DuckDB: `bare_duckdb.py`, writing Parquet, at a scale factor at which starting up counts for little;
* the platform through Dagster.

Before any time counts, the sides must hold the same rows: their number, their money, a hash over every column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks import harness as bench
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation

YEAR_DAYS = 366
QUICK_ROUNDS_S = 240
"""In `--quick` a comparison begins no round that would, as long as the one before, end later than this."""

PLATFORM, BARE_SPARK, DUCKDB, DAGSTER = "platform", "bare Spark", "DuckDB", "platform through Dagster"
_UNITS_GIB = {"k": 1 / (1 << 20), "m": 1 / (1 << 10), "g": 1, "t": 1 << 10}


class Plan(NamedTuple):
    """How much is measured; the load through Dagster has one round."""

    days: int
    scale: int
    rounds: int
    rounds_within_s: float


def at_scale_1(root: Path, plan: Plan) -> list[bench.Outcome]:
    """(a) against (b), and the same through Dagster."""
    with landed(root, Simulation(days=plan.days)) as sample:
        runs = _compare(sample, plan, {BARE_SPARK: "benchmarks.bare_spark"})
        through_dagster = sample.platform(DAGSTER, "dagster")
        sample.check(PLATFORM, DAGSTER)
    bench.print_runs(f"{plan.days} days, scale factor 1", runs | {DAGSTER: [through_dagster]})
    share_ms = 1000 * through_dagster.seconds / (len(TABLES) * plan.days)
    more = through_dagster.seconds / median(run.seconds for run in runs[PLATFORM])
    bench.console.print(
        f"Through Dagster: {share_ms:.0f} ms per asset and day ({len(TABLES)} assets, {plan.days} days).\n"
    )
    return [
        bench.Goal(f"platform / bare Spark, {plan.days} days", "<=", 1.15).judge(
            bench.ratios(runs, PLATFORM, BARE_SPARK)
        ),
        bench.Goal(f"through Dagster / without, {plan.days} days", "<=", 1.3).judge([more]),
    ]


def at_scale(root: Path, plan: Plan) -> list[bench.Outcome]:
    """(a) against (b) and (c), with the memory of (a)."""
    what = f"{plan.days} days, scale factor {plan.scale}"
    with landed(root, Simulation(days=plan.days, scale=plan.scale)) as sample:
        runs = _compare(sample, plan, {BARE_SPARK: "benchmarks.bare_spark", DUCKDB: "benchmarks.bare_duckdb"})
    bench.print_runs(what, runs)
    memory = re.search(r"^spark\.driver\.memory: (\d+)([kmgt])$", runs[PLATFORM][0].printed.lower(), re.MULTILINE)
    heap_gib = [int(memory[1]) * _UNITS_GIB[memory[2]]] if memory else []
    peaks_gib = [run.jvm_peak_bytes / bench.GIB for run in runs[PLATFORM] if run.jvm_peak_bytes is not None]
    return [
        bench.Goal(f"platform / bare Spark, {what}", "<=", 1.3).judge(bench.ratios(runs, PLATFORM, BARE_SPARK)),
        bench.Goal(f"platform / DuckDB, {what}", "<=", 6).judge(bench.ratios(runs, PLATFORM, DUCKDB)),
        bench.Goal("spark.driver.memory, GiB", "<=", 3).judge(heap_gib),
        bench.Goal(f"JVM's peak resident memory, GiB, {what}", "<=", 4).judge(peaks_gib and [max(peaks_gib)]),
    ]


def _compare(sample: Sample, plan: Plan, scripts: Mapping[str, str]) -> dict[str, list[bench.Run]]:
    """The platform and scripts by turns, each from nothing; equal after every round."""

    def platform(_: int) -> bench.Run:
        sample.empty(PLATFORM)
        return sample.platform(PLATFORM, "engine")

    def script(name: str) -> Callable[[int], bench.Run]:
        return lambda _: sample.script(name, scripts[name])

    def check() -> None:
        for name in scripts:
            sample.check(PLATFORM, name)

    sides: dict[str, Callable[[int], bench.Run]] = {PLATFORM: platform, **{name: script(name) for name in scripts}}
    return bench.alternate(sides, plan.rounds, plan.rounds_within_s, check)


def main(
    quick: bench.Quick = False,
    json_path: bench.JsonPath = None,
    days: Annotated[int, typer.Option(min=1, max=YEAR_DAYS, help="Days of sales.")] = YEAR_DAYS,
    scale: Annotated[int, typer.Option(min=1, help="Scale factor of the second load.")] = 5,
    rounds: bench.Rounds = 3,
) -> None:
    """Measure the first load."""
    plan = Plan(30, scale, 2, QUICK_ROUNDS_S) if quick else Plan(days, scale, rounds, float("inf"))

    def measure(root: Path) -> list[bench.Outcome]:
        warm_up(root)
        return [one for comparison in (at_scale_1, at_scale) for one in comparison(root, plan)]

    bench.measured("The first load", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
