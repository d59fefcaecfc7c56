"""What a single day of millions of rows costs, and in how many files it lies; by turns with another checkout.

    uv run python -m benchmarks.large_day [--rows 3000000] [--skewed] [--before CHECKOUT] [--rounds 2] [--json PATH]

Parquet files with readings of one day, an eleventh of the rows being corrections of others; with `--skewed` half of all
rows are versions of a single reading. One `refresh` takes them, removes the older versions, converts every reading, and
sums them over a week: a process of its own, with a driver of 3 GiB as by default. Digests of all sides must be equal,
and readings counted by DuckDB, before a time counts. Where others are at work, seconds say little: what tasks took of
the processors, and what that is at least on this machine's cores, says more.

`--before` names a checkout of another version: it needs no environment of its own, as long as it asks for the same.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console

from benchmarks.harness import BenchmarkError, Run, alternate, print_runs, run_command
from benchmarks.task_times import TaskTimes, event_log, task_times
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings, project_root

DAY = date(2017, 1, 1)
SENSORS, PER_FILE = 200_000, 2_000_000
CORRECTED = 11
"""Every so manieth row is another version of a reading."""
TABLES = "readings_of_a_day"
"""Name under which all sides find the benchmark's tables."""
_TOOK = re.compile(r"^(\w+\.\w+): .*, ([\d.]+) s$", re.MULTILINE)
_MAIN = "from platform_assets.cli import main; main()"

console = Console(width=None if sys.stdout.isatty() else 120)


def deliver(landing: Path, rows: int, *, skewed: bool) -> int:
    """Readings of the day and their corrections, as Parquet files; how many readings there are in the end."""
    folder = landing / "readings" / str(DAY)
    folder.mkdir(parents=True)
    first = rows - rows // CORRECTED
    sensor, number = f"k % {SENSORS}", f"k // {SENSORS}"
    if skewed:
        sensor, number = (f"CASE WHEN i % 2 = 0 THEN 0 ELSE {of_key} END" for of_key in (sensor, number))
    with duckdb.connect() as database:
        database.execute(
            f"CREATE VIEW made AS SELECT {sensor} AS sensor, {number} AS number, "
            f"TIMESTAMP '{DAY}' + INTERVAL ({number} * 17 % 86400) SECOND AS measured_at, "
            "((hash(i) % 6000)::DECIMAL(8, 2) / 100)::DECIMAL(8, 2) AS celsius, "
            "'hall ' || hash(k // 3) % 10000 AS place, "
            f"TIMESTAMP '{DAY}' + INTERVAL (i) MILLISECOND AS updated_at, i FROM (SELECT i, "
            f"CASE WHEN i < {first} THEN i ELSE (i - {first}) * {CORRECTED - 1} END AS k FROM range({rows}) AS t(i))"
        )
        for file, start in enumerate(range(0, rows, PER_FILE)):
            database.execute(
                f"COPY (SELECT sensor, number, measured_at, celsius, place, updated_at FROM made "
                f"WHERE i >= {start} AND i < {start + PER_FILE}) TO '{folder}/part-{file}.parquet' (FORMAT PARQUET)"
            )
        counted = database.execute(f"SELECT count(DISTINCT (sensor, number)) FROM '{folder}/*.parquet'").fetchall()
    return int(counted[0][0])


def environ(state: Path, landing: Path, checkout: Path) -> dict[str, str]:
    """What a side sees: the platform of its own checkout, the benchmark's tables of this one."""
    own = {
        "STATE": state,
        "JARS": load_settings().jars,
        "LANDING": landing,
        "CALENDAR_FIRST": DAY,
        "CALENDAR_LAST": DAY,
        "TODAY": DAY,
        "DOMAINS": TABLES,
        "SETTLE_S": 0,
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")},
        **{f"PLATFORM_{name}": str(value) for name, value in own.items()},
        "PLATFORM_SPARK_CONF": json.dumps(dict(event_log(events_of(state)))),
        "PYTHONPATH": f"{checkout}{os.pathsep}{landing.parent}",
    }


def load(state: Path, landing: Path, checkout: Path, log: Path) -> Run:
    """One whole refresh of an empty installation."""
    shutil.rmtree(state, ignore_errors=True)
    events_of(state).mkdir(exist_ok=True)
    return run_command((sys.executable, "-P", "-c", _MAIN, "refresh"), env=environ(state, landing, checkout), log=log)


def events_of(state: Path) -> Path:
    """Where Spark writes what its tasks took."""
    return state.with_name(f"{state.name}-events")


def found_in(state: Path) -> dict[str, tuple[str, int, int]]:
    """Digest, rows and files of the day, by table."""
    settings = load_settings(
        state=state, domains="benchmarks.readings", calendar_first=DAY, calendar_last=DAY, today=DAY
    )
    lake = Lake.at(settings.lake)
    found: dict[str, tuple[str, int, int]] = {}
    with open_platform(settings) as platform:
        for table, version in current_release(lake).versions.items():
            record = platform.ledger.current_days(table).get(DAY)
            files = live_files(lake.table_path(table), version).get(DAY, ())
            if record is not None:
                found[table] = record.digest, record.rows, len(files)
    return found


def main(
    rows: Annotated[int, typer.Option(min=1000, help="Rows delivered for the day.")] = 3_000_000,
    skewed: Annotated[bool, typer.Option(help="Half of them are versions of one reading.")] = False,
    before: Annotated[Path | None, typer.Option(exists=True, file_okay=False, help="Checkout to compare with.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Each side so many times, by turns.")] = 1,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the runs there.")] = None,
) -> None:
    """Measure."""
    checkouts = {"before": before.resolve()} if before else {}
    checkouts["now"] = project_root()
    with tempfile.TemporaryDirectory(prefix="large-day-") as temporary:
        folder = Path(temporary)
        shutil.copytree(project_root() / "benchmarks/readings", folder / TABLES)
        readings = deliver(folder / "landing", rows, skewed=skewed)

        def check() -> None:
            found = {name: found_in(folder / name) for name in checkouts}
            digests = [{table: digest for table, (digest, _, _) in of.items()} for of in found.values()]
            if any(one != digests[0] for one in digests) or found["now"]["silver.readings"][1] != readings:
                raise BenchmarkError(f"The sides do not hold the same: {found}, and {readings:,} readings came.")

        sides = {
            name: (
                lambda number, name=name: load(
                    folder / name, folder / "landing", checkouts[name], folder / f"{name}.log"
                )
            )
            for name in checkouts
        }
        runs = alternate(sides, rounds, 24 * 3600, check)
        print_runs(console, f"{rows:,} rows of one day", runs)
        for name in checkouts:
            _print_tables(name, runs[name][-1], found_in(folder / name))
            _print_tasks(name, task_times(events_of(folder / name), os.cpu_count() or 1))
    if json_path:
        json_path.write_text(json.dumps({name: [asdict(run) for run in done] for name, done in runs.items()}, indent=2))


def _print_tables(name: str, run: Run, found: Mapping[str, tuple[str, int, int]]) -> None:
    took = [(table, float(seconds)) for table, seconds in _TOOK.findall(run.printed)]
    for table, (_, rows, files) in sorted(found.items()):
        seconds = sum(of_table for name_of, of_table in took if name_of == table)
        console.print(f"{name}: {table}, {rows:,} rows in {files} files, {seconds:.1f} s")


def _print_tasks(name: str, tasks: TaskTimes) -> None:
    console.print(
        f"{name}: tasks took {tasks.cpu_s:.1f} s of processors, on {os.cpu_count()} at least {tasks.least_s:.1f} s, "
        f"the longest {tasks.longest_s:.1f} s, {tasks.spilled / 1e6:,.0f} MB spilled"
    )


if __name__ == "__main__":
    typer.run(main)
