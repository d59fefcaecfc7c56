"""A delivery with a row on each of many weeks: 1,610 days of eight rows follow, so that days cost and rows do not.

    uv run python -m benchmarks.small_days [--weeks 230] [--rounds 3] [--beside FOLDER] [--json PATH]

Loads `benchmarks.weekly` once, then refreshes copies of it after the delivery, each in a process that starts Spark.
With `--beside`, by turns with the same command of another checkout of the project, whose lake must hold the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks import harness as bench
from benchmarks.corrected import replace_by_copy
from benchmarks.warm import digests
from platform_assets.settings import load_settings, project_root

MOST = 0.35
FIRST = date(2013, 1, 7)
STORES = range(1, 9)
_SCHEMA = pa.schema(
    [
        ("store", pa.int64()),
        ("week", pa.date32()),
        ("sales", pa.decimal128(12, 2)),
        ("updated_at", pa.timestamp("us", "UTC")),
    ]
)


def deliver(state: Path, weeks: int, number: int) -> None:
    """Land all figures of the weeks, or the later a store's of each, dearer and under a newer version."""
    last = FIRST + timedelta(days=7 * weeks - 1)
    state.mkdir(parents=True, exist_ok=True)
    said = {"calendar_first": FIRST, "calendar_last": last, "today": last + timedelta(days=9 + number)}
    (state / "settings.toml").write_text("".join(f"{name} = {value}\n" for name, value in said.items()))
    written = datetime(2022, 1, 1, number, tzinfo=UTC)
    rows = [
        (store, FIRST + timedelta(days=7 * week), Decimal(100 * store + week % 50 + number), written)
        for week in range(weeks)
        for store in ([STORES[week % 8]] if number else STORES)
    ]
    columns = dict(zip(_SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))
    file = state / f"landing/figures/{last + timedelta(days=1 + number)}/figures-{number}.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns, schema=_SCHEMA), file)
    os.utime(file, (0, 0))  # it rests: nobody is writing it any more


def main(
    weeks: Annotated[int, typer.Option(min=5, help="Weeks with figures.")] = 230,
    rounds: bench.Rounds = 3,
    beside: Annotated[Path | None, typer.Option(help="Another checkout, before a change.")] = None,
    json_path: bench.JsonPath = None,
) -> None:
    """Measure this checkout, and another one by turns."""
    checkouts = {"this": project_root()} | ({"before": beside.absolute()} if beside else {})

    def refreshed(root: Path, side: str, state: Path) -> bench.Run:
        path = os.pathsep.join(map(str, (checkouts[side], root)))
        jars = str(load_settings().jars)
        env = os.environ | {"PYTHONPATH": path, "PLATFORM_STATE": str(state), "PLATFORM_JARS": jars}
        command = (*bench.COMMAND, "refresh")
        return bench.run_command(command, env=env | {"PLATFORM_DOMAINS": "weekly"}, log=root / f"{side}.log")

    def measure_all(root: Path) -> list[bench.Outcome]:
        shutil.copytree(Path(__file__).with_name("weekly"), root / "weekly")
        loaded = root / "loaded"
        deliver(loaded, weeks, 0)
        refreshed(root, "this", loaded)
        deliver(loaded, weeks, 1)

        def side(name: str, _: int) -> bench.Run:
            replace_by_copy(root / name, loaded)
            return refreshed(root, name, root / name)

        def check() -> None:
            held = [digests(root / name) for name in checkouts]
            if held[0] != held[-1]:
                raise bench.BenchmarkError("The two lakes hold something else.")

        sides: Mapping[str, Callable[[int], bench.Run]] = {name: partial(side, name) for name in checkouts}
        runs = bench.alternate(sides, rounds, check=check)
        bench.print_runs(f"{7 * weeks:,} days of {len(STORES)} rows", runs)
        goal = bench.Goal("many small days: this / before", "<=", MOST)
        return [goal.judge(bench.ratios(runs, "this", "before"))] if beside else []

    bench.measured("Many small days", json_path, measure_all)


if __name__ == "__main__":
    typer.run(main)
