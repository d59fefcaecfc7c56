"""How time, bytes and memory grow with rows: TPC-H's orders and lines at several scales, loaded and then corrected.

    uv run python -m benchmarks.scale [--quick] [--scales 1,3,10] [--cluster] [--json PATH] [--plot PNG]

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
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.harness import GIB, BenchmarkError, Goal, Outcome, Run, print_outcomes, run_command, write_json
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
_MAIN = "from platform_assets.cli import main; main()"

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Point:
    """One scale.

    Args:
        scale: TPC-H's.
        delivered: what lay in the landing folder.
        stages: each a process.
        lake_bytes: after each, of everything in the lake.
    """

    scale: float
    delivered: Delivered
    stages: Mapping[str, Run]
    lake_bytes: Mapping[str, int]

    def layer_s(self, stage: str) -> dict[str, float]:
        """What each layer took of a stage."""
        seconds = dict.fromkeys(LAYERS, 0.0)
        for layer, took in _TOOK.findall(self.stages[stage].printed):
            seconds[layer] += float(took)
        return seconds


@dataclass(frozen=True)
class Place:
    """Where one scale is computed.

    Args:
        folder: for all of it.
        lake: folder in which the lake's bytes lie.
        variables: settings besides those of the benchmark.
    """

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


def exponent(rows: Sequence[float], seconds: Sequence[float]) -> float:
    """By which power of the rows the seconds grow."""
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def measure(scale: float, place: Place) -> Point:
    """Load and correct at one scale.

    Raises:
        BenchmarkError: a command failed, or what is published is not what was delivered.
    """
    generated, landing = place.folder / "generated", place.folder / "landing"
    generate(generated, scale)
    delivered = deliver(generated, landing)
    stages: dict[str, Run] = {}
    lake_bytes: dict[str, int] = {}
    for stage in STAGES:
        if stage == "correction":
            correct(generated, landing, CORRECTED_DAY, LINES)
        stages[stage] = platform(place, stage, "refresh")
        lake_bytes[stage] = sum(file.stat().st_size for file in place.lake.rglob("*") if file.is_file())
        console.print(f"scale {scale:g}, {stage}: {stages[stage].seconds:.1f} s", style="dim")
    printed = platform(place, "read", "read", "gold.pricing", "--format", "json").printed
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    found = sum(row["lines"] for row in rows), sum(Decimal(row["price"]) for row in rows)
    if found != (wanted := totals(generated, LINES)):
        raise BenchmarkError(
            f"Published are {found[0]:,} lines of {found[1]:,}, and {wanted[0]:,} of {wanted[1]:,} came."
        )
    return Point(scale, delivered, stages, lake_bytes)


def platform(place: Place, name: str, *command: str) -> Run:
    """A command of the platform, as a process of its own."""
    return run_command((sys.executable, "-c", _MAIN, *command), env=place.environ(), log=place.folder / f"{name}.log")


@contextmanager
def places(*, cluster: bool) -> Iterator[Callable[[float], Place]]:
    """Gives each scale a place: on this machine, or on a cluster with its lake in a bucket."""
    with ExitStack() as opened:
        root = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="scale-", ignore_cleanup_errors=True)))
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
    table = Table(title="TPC-H orders and lines", title_justify="left")
    for heading in ("scale", "rows", "MB in", "stage"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for heading in ("seconds", *(f"{layer} s" for layer in LAYERS), "JVM GiB", "lake MB", "load avg"):
        table.add_column(heading, justify="right")
    for point in points:
        for name, run in point.stages.items():
            table.add_row(
                f"{point.scale:g}",
                f"{point.delivered.rows:,}",
                f"{point.delivered.bytes / 1e6:,.0f}",
                name,
                f"{run.seconds:.1f}",
                *(f"{seconds:.1f}" for seconds in point.layer_s(name).values()),
                "" if run.jvm_peak_bytes is None else f"{run.jvm_peak_bytes / GIB:.2f}",
                f"{point.lake_bytes[name] / 1e6:,.0f}",
                f"{run.load:.1f}",
            )
    console.print(table)


def plot(points: Sequence[Point], file: Path) -> None:
    """Seconds of every stage over rows, and memory beside it."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(9, 4), layout="constrained")
    seconds, memory = figure.subplots(1, 2)
    rows = [point.delivered.rows / 1e6 for point in points]
    for layer, marker in zip(LAYERS, "sD^", strict=True):
        took = [point.layer_s("load")[layer] for point in points]
        seconds.plot(rows, took, marker=marker, linestyle="--", label=f"{layer} of the load")
    for name, marker in zip(STAGES, "ov", strict=True):
        runs = [point.stages[name] for point in points]
        seconds.plot(rows, [run.seconds for run in runs], marker=marker, label=name)
        memory.plot(rows, [(run.jvm_peak_bytes or 0) / GIB for run in runs], marker=marker, label=name)
    seconds.set(xscale="log", yscale="log", xlabel="million rows delivered", ylabel="seconds")
    memory.set(xscale="log", xlabel="million rows delivered", ylabel="most memory of the JVM, GiB")
    for axes in (seconds, memory):
        axes.set_xticks(rows, [f"{million:.2g}" for million in rows])
        axes.set_xticks([], minor=True)
    seconds.yaxis.set_major_formatter(ScalarFormatter())
    memory.set_ylim(bottom=0)
    seconds.legend(fontsize=8)
    memory.legend(fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def outcomes_of(points: Sequence[Point]) -> list[Outcome]:
    """How load and correction grow; nothing where there is one scale only."""
    if len(points) < 2:
        return []
    rows = [float(point.delivered.rows) for point in points]
    load = exponent(rows, [point.stages["load"].seconds for point in points])
    correction = exponent(rows, [point.stages["correction"].seconds for point in points])
    return [
        Goal("exponent of the load", "<=", LOAD).judge([load]),
        Goal(f"exponent of a correction of {LINES} lines of a day", "<=", CORRECTION).judge([correction]),
    ]


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Scales 0.1, 0.3 and 1.")] = False,
    scales: Annotated[str, typer.Option(help="TPC-H's scales, with commas.")] = "1,3,10",
    cluster: Annotated[
        bool, typer.Option("--cluster", help="On a standalone cluster, with the lake in a bucket.")
    ] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
    plot_path: Annotated[Path | None, typer.Option("--plot", help="Draw the curves there, as PNG.")] = None,
) -> None:
    """Measure growth. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    try:
        wanted = sorted({float(scale) for scale in (QUICK if quick else scales).split(",")})
    except ValueError as error:
        raise typer.BadParameter("scales are numbers with commas between, such as 0.1,1") from error
    points: list[Point] = []
    try:
        with places(cluster=cluster) as place_of:
            for scale in wanted:
                place = place_of(scale)
                points.append(measure(scale, place))
                shutil.rmtree(place.folder, ignore_errors=True)
    except BenchmarkError as error:
        console.print(str(error), markup=False, highlight=False, style="red")
        raise typer.Exit(3) from error
    print_points(points)
    if plot_path:
        plot(points, plot_path)
    outcomes = outcomes_of(points)
    print_outcomes(console, "Growth", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


if __name__ == "__main__":
    typer.run(main)
