"""How time, bytes and memory grow with rows: TPC-H's orders and lines at several scales, loaded and then corrected.

    uv run python -m benchmarks.scale [--quick] [--scales 1,3,10] [--cluster] [--json PATH]

Orders of seven years lie on ninety days, so that scale adds rows and no days; every fiftieth order comes once more
three days later, corrected. At each scale one process takes all deliveries and computes everything; then a file
corrects a hundred lines of one day, and another process takes it and recomputes what it reaches. Both start Spark, as a
command does, some five seconds of each. What raw, silver and gold took of them, the command itself says.

What is published is held against DuckDB's sums of what was delivered; else nothing is measured. The exponent of growth
is the slope of the logarithms, by least squares: 1 is twice the time for twice the rows, 0 is the same time.

`tpchgen-cli` makes the rows; `uvx` brings it. Scale 1 are 7.7 million rows and some 2.5 GB of disk, scale 10 twelve.
With `--cluster` a standalone master and two workers of one core compute, on this machine, with the lake in a bucket.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks import harness as bench
from benchmarks.tpch.deliveries import DAYS, FIRST, Delivered, correct, deliver, generate, totals
from platform_assets.settings import load_settings
from platform_assets_tests.support.cluster import Cluster, running_cluster
from platform_assets_tests.support.object_store import ObjectStore, running_store

LAST = FIRST + timedelta(days=DAYS - 1)
CORRECTED_DAY = FIRST + timedelta(days=DAYS - 20)
LINES = 100
QUICK = "0.1,0.3,1"
LOAD, CORRECTION = 1.1, 0.2
STAGES = ("load", "correction")
LAYERS = ("raw", "silver", "gold")
_TOOK = re.compile(r"^(\w+)\.\w+: .*, ([\d.]+) s$", re.MULTILINE)


@dataclass(frozen=True)
class Point:
    """One scale: what was delivered, the process of each stage, and the lake's bytes after it."""

    scale: float
    delivered: Delivered
    stages: Mapping[str, bench.Run]
    lake_bytes: Mapping[str, int]

    def layer_s(self, stage: str) -> dict[str, float]:
        """What each layer took of a stage."""
        seconds = dict.fromkeys(LAYERS, 0.0)
        for layer, took in _TOOK.findall(self.stages[stage].printed):
            seconds[layer] += float(took)
        return seconds


@dataclass(frozen=True)
class Place:
    """Where one scale is computed: folders for all of it and of the lake's bytes, and settings of its own."""

    folder: Path
    lake: Path
    variables: Mapping[str, str]

    def environ(self) -> dict[str, str]:
        """What its commands see."""
        own = {
            "STATE": self.folder / "state",
            "JARS": load_settings().jars,
            "LANDING": self.folder / "landing",
            "CALENDAR_FIRST": FIRST,
            "CALENDAR_LAST": LAST,
            "TODAY": LAST,
            "DOMAINS": "benchmarks.tpch",
            "SETTLE_S": 0,
        }
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")},
            **{f"PLATFORM_{name}": str(value) for name, value in own.items()},
            **self.variables,
        }


def measure(scale: float, place: Place) -> Point:
    """Load and correct at one scale; what is published must be what was delivered."""
    generated, landing = place.folder / "generated", place.folder / "landing"
    generate(generated, scale)
    delivered = deliver(generated, landing)
    stages: dict[str, bench.Run] = {}
    lake_bytes: dict[str, int] = {}
    for stage in STAGES:
        if stage == "correction":
            correct(generated, landing, CORRECTED_DAY, LINES)
        stages[stage] = platform(place, stage, "refresh")
        lake_bytes[stage] = sum(file.stat().st_size for file in place.lake.rglob("*") if file.is_file())
        bench.console.print(f"scale {scale:g}, {stage}: {stages[stage].seconds:.1f} s", style="dim")
    rows = bench.printed_json(platform(place, "read", "read", "gold.pricing", "--format", "json"))
    found = sum(row["lines"] for row in rows), sum(Decimal(row["price"]) for row in rows)
    if found != (wanted := totals(generated, LINES)):
        raise bench.BenchmarkError(
            f"Published are {found[0]:,} lines of {found[1]:,}, and {wanted[0]:,} of {wanted[1]:,} came."
        )
    return Point(scale, delivered, stages, lake_bytes)


def platform(place: Place, name: str, *command: str) -> bench.Run:
    """A command of the platform, as a process of its own."""
    return bench.run_command((*bench.COMMAND, *command), env=place.environ(), log=place.folder / f"{name}.log")


@contextmanager
def places(root: Path, *, cluster: bool) -> Iterator[Callable[[float], Place]]:
    """Gives each scale a place: on this machine, or on a cluster with its lake in a bucket."""
    with ExitStack() as opened:
        of_cluster: Cluster | None = None
        store: ObjectStore | None = None
        if cluster:
            store = opened.enter_context(running_store(root / "store"))
            of_cluster = opened.enter_context(running_cluster())

        def at(scale: float) -> Place:
            folder = root / f"{scale:g}"
            folder.mkdir()
            if store is None or of_cluster is None:
                return Place(folder, folder / "state" / "lake", {})
            variables = {
                **store.environ,
                "PLATFORM_LAKE": f"{store.url}/{scale:g}",
                "PLATFORM_SPARK_MASTER": of_cluster.master,
                "PLATFORM_SPARK_CONF": json.dumps(of_cluster.conf()),
            }
            return Place(folder, store.folder / f"{scale:g}", variables)

        yield at


def print_points(points: Sequence[Point]) -> None:
    """Every stage at every scale."""
    headings = ("scale", "stage", "rows", "MB in", "seconds", *(f"{layer} s" for layer in LAYERS), "JVM GiB")
    rows = [
        (
            f"{point.scale:g}",
            name,
            f"{point.delivered.rows:,}",
            f"{point.delivered.bytes / 1e6:,.0f}",
            f"{run.seconds:.1f}",
            *(f"{seconds:.1f}" for seconds in point.layer_s(name).values()),
            "" if run.jvm_peak_bytes is None else f"{run.jvm_peak_bytes / bench.GIB:.2f}",
            f"{point.lake_bytes[name] / 1e6:,.0f}",
            f"{run.load:.1f}",
        )
        for point in points
        for name, run in point.stages.items()
    ]
    bench.print_table("TPC-H orders and lines", (*headings, "lake MB", "load avg"), rows, left=2)


def outcomes_of(points: Sequence[Point]) -> list[bench.Outcome]:
    """How load and correction grow; nothing where there is one scale only."""
    if len(points) < 2:
        return []
    rows = [float(point.delivered.rows) for point in points]
    outcomes = []
    for stage, name, most in (
        ("load", "the load", LOAD),
        ("correction", f"a correction of {LINES} lines of a day", CORRECTION),
    ):
        slope = np.polyfit(np.log(rows), np.log([point.stages[stage].seconds for point in points]), 1)[0]
        outcomes.append(bench.Goal(f"exponent of {name}", "<=", most).judge([float(slope)]))
    return outcomes


def main(
    quick: bench.Quick = False,
    scales: Annotated[str, typer.Option(help="TPC-H's scales, with commas.")] = "1,3,10",
    cluster: Annotated[
        bool, typer.Option("--cluster", help="On a standalone cluster, with the lake in a bucket.")
    ] = False,
    json_path: bench.JsonPath = None,
) -> None:
    """Measure growth; quickly at scales 0.1, 0.3 and 1."""
    try:
        wanted = sorted({float(scale) for scale in (QUICK if quick else scales).split(",")})
    except ValueError as error:
        raise typer.BadParameter("scales are numbers with commas between, such as 0.1,1") from error

    def measure_all(root: Path) -> list[bench.Outcome]:
        points: list[Point] = []
        with places(root, cluster=cluster) as place_of:
            for scale in wanted:
                place = place_of(scale)
                points.append(measure(scale, place))
                shutil.rmtree(place.folder, ignore_errors=True)
        print_points(points)
        return outcomes_of(points)

    bench.measured("Growth", json_path, measure_all)


if __name__ == "__main__":
    typer.run(main)
