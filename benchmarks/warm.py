"""A late file of a few lines on two days: from the tick that finds it to published, with Spark kept ready and without.

    uv run python -m benchmarks.warm [--sqlmesh] [--state FOLDER] [--rounds 3] [--days 366] [--json PATH]

Runs on copies of a state folder that `platform-assets demo` left behind; without one, a demo is run first. On each copy
a real `platform-assets up` is at work, one after the other, and is given the same files, one after the other: its
sensor finds each, and requests a run. What is told apart, by Dagster's own times and the newest manifest:

* until the run's process has started its work: the tick, the queue, Python, Dagster and the definitions;
* until everything is published: Spark, ingest, planning, silver and gold.

In the end both lakes must hold the same: the digest of every day of every table.

With `--sqlmesh`, the same corrections in the raw table of a SQLMesh project (`benchmarks.sqlmesh_project`) with two of
the seven tables: a process for each restates the range between the two days, which is what its plan can name. It is
told the range, takes no file and checks nothing. In the end its silver table must hold the platform's rows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import requests
import typer

from benchmarks import harness as bench
from benchmarks.corrected import Corrections, corrections, replace_by_copy
from benchmarks.dagster_server import Server
from benchmarks.equality import Content, check_equal, table_content
from benchmarks.sqlmesh_project import SILVER, Project, installed
from platform_assets.contracts import Contract
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.settings import load_settings, project_root

MOST_S = 6.0
MOST_OF_SQLMESH = 0.15
LINES = 3
_WITHIN_S = 900
_RUNS = """{ runsOrError(filter: {pipelineName: "refresh"}, limit: 1) {
  ... on Runs { results { runId status startTime endTime } } } }"""
_TICKS = """{ sensorsOrError(repositorySelector: {
  repositoryLocationName: "platform_assets", repositoryName: "__repository__"}) {
  ... on Sensors { results { name sensorState { ticks(limit: 20) { timestamp runIds skipReason } } } } } }"""


@dataclass(frozen=True)
class Taken:
    """Seconds of one late file: from the tick to the start of the run's work, and until all was published."""

    to_start_s: float
    to_published_s: float
    load: float

    @property
    def seconds(self) -> float:
        """From the tick to published."""
        return self.to_start_s + self.to_published_s


def late_files(state: Path, rounds: int) -> list[Corrections]:
    """Files for the same two days, each newer than the one before."""
    settings = load_settings(state=state)
    days = settings.calendar()
    chosen = (days[len(days) // 10], days[len(days) * 9 // 10])
    lake = settings.lake_folder
    case = corrections("late", chosen, lake / "raw/transactions", lake / SILVER_TRANSACTIONS.name.replace(".", "/"))
    return [case.later(number, LINES) for number in range(rounds)]


def measure(
    state: Path, cases: list[Corrections], *, warm: bool, log: Path, checkout: Path | None = None
) -> list[Taken]:
    """Give the files to an `up` at work, of this checkout or another one, one after the other."""
    with up(state, warm=warm, log=log, checkout=checkout or project_root()) as server:
        wait_for(lambda: quiet(server), "a tick with nothing to do")
        if warm:
            wait_for((state / "warm.sock").exists, "Spark that is kept ready")
        return [take(server, state, case) for case in cases]


def take(server: Server, state: Path, case: Corrections) -> Taken:
    """Land a file, and wait until it is published."""
    before, load = newest_run(server), os.getloadavg()[0]
    with case.landed(load_settings(state=state).landing_folder):
        wait_for(lambda: newest_run(server).get("runId") != before.get("runId"), "a run")
        wait_for(lambda: newest_run(server)["status"] in ("SUCCESS", "FAILURE"), "the end of the run")
    run = newest_run(server)
    if run["status"] != "SUCCESS":
        raise bench.BenchmarkError(f"The run {run['runId']} failed; see the pages of {state}.")
    ticked = next(tick["timestamp"] for tick in ticks(server) if run["runId"] in tick["runIds"])
    last = max(released_at(state, run["runId"]))
    return Taken(run["startTime"] - ticked, last - run["startTime"], load)


def released_at(state: Path, run: str) -> Iterator[float]:
    """When what a run published was released, in seconds since 1970."""
    lake = Lake.at(load_settings(state=state).lake)
    for release, publication in published(lake):
        if manifest_of(lake, publication).run == run:
            yield (Path(str(lake.root)) / "_releases" / "_delta_log" / f"{release:020}.json").stat().st_mtime


def newest_run(server: Server) -> dict[str, Any]:
    """Of the job `refresh`; nothing where there is none."""
    found = server.ask(_RUNS)["runsOrError"]["results"]
    return dict(found[0]) if found else {}


def ticks(server: Server) -> list[dict[str, Any]]:
    """Of the sensor of late data, newest first."""
    sensors = server.ask(_TICKS)["sensorsOrError"].get("results", ())
    return [tick for one in sensors if one["name"] == "late_data" for tick in one["sensorState"]["ticks"]]


def quiet(server: Server) -> bool:
    """Whether the sensor has looked and found nothing to do."""
    try:
        return any("nothing to do" in (tick["skipReason"] or "") for tick in ticks(server)[:1])
    except (requests.RequestException, bench.BenchmarkError, KeyError, ValueError):
        return False


@contextmanager
def up(state: Path, *, warm: bool, log: Path, checkout: Path) -> Iterator[Server]:
    """`platform-assets up` on a state folder."""
    port = 3980
    with log.open("ab") as output:
        environment = env_of(state) | {"PLATFORM_WARM": str(warm), "PYTHONPATH": str(checkout)}
        command = [*bench.COMMAND, "up", "--port", str(port)]
        process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=output, stderr=output)
        try:
            yield Server(f"http://127.0.0.1:{port}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def env_of(state: Path) -> dict[str, str]:
    """What a process for a state folder is started with: the project's jars, so that all starts are alike."""
    return os.environ | {"PLATFORM_STATE": str(state), "PLATFORM_JARS": str(load_settings().jars)}


def digests(state: Path) -> Mapping[str, Mapping[date, str]]:
    """The digest of every day of every table, as the newest manifest of each says."""
    lake, newest = Lake.at(load_settings(state=state).lake), dict[str, dict[date, str]]()
    for _, publication in published(lake):
        for change in manifest_of(lake, publication).tables:
            newest.setdefault(change.table, {}).update({day: one.digest for day, one in change.days.items()})
    return newest


def restated(state: Path, cases: list[Corrections], folder: Path) -> tuple[list[bench.Run], Content]:
    """SQLMesh restates the range of each correction on what a state folder has as raw; and its silver table then."""
    settings, days = load_settings(state=state), load_settings(state=state).calendar()
    project = Project(installed(), folder, folder / "raw", settings.jars, days[0], days[-1])
    replace_by_copy(project.raw, table_folder(state, RAW_TRANSACTIONS))
    project.load()
    runs: list[bench.Run] = []
    for case in cases:
        case.append_to(project.raw)
        runs.append(project.restate(case.days[0], case.days[-1]))
    return runs, table_content(project.table(SILVER), SILVER_TRANSACTIONS)


def table_folder(state: Path, contract: Contract) -> Path:
    """Where a state folder has a table."""
    return load_settings(state=state).lake_folder / contract.name.replace(".", "/")


def wait_for(happened: Callable[[], bool], what: str) -> None:
    """Wait, looking every half second."""
    until = time.monotonic() + _WITHIN_S
    while not happened():
        if time.monotonic() > until:
            raise bench.BenchmarkError(f"{what} did not come within {_WITHIN_S} s.")
        time.sleep(0.5)


def main(
    state: Annotated[Path | None, typer.Option(help="A state folder of the demo; one is made by default.")] = None,
    rounds: bench.Rounds = 3,
    days: Annotated[int, typer.Option(min=31, max=366, help="Of the demo that is made.")] = 366,
    sqlmesh: Annotated[bool, typer.Option("--sqlmesh", help="Hold it against SQLMesh, which is installed.")] = False,
    json_path: bench.JsonPath = None,
) -> None:
    """Measure both sides, a late file a round."""

    def measure_all(root: Path) -> list[bench.Outcome]:
        loaded, cold, ready = (state or root / "loaded").absolute(), root / "cold", root / "ready"
        if state is None:
            bench.run_command((*bench.COMMAND, "demo", "--days", days), env=env_of(loaded), log=root / "demo.log")
        cases = late_files(loaded, rounds)
        found: dict[str, list[Taken]] = {}
        for side, warm, place in (("started for each run", False, cold), ("kept ready", True, ready)):
            replace_by_copy(place, loaded)
            found[side] = measure(place, cases, warm=warm, log=root / "up.log")
        if digests(cold) != digests(ready):
            raise bench.BenchmarkError("The two lakes hold something else.")
        print_taken(found)
        seconds = [one.seconds for one in found["kept ready"]]
        outcomes = [bench.Goal("Spark kept ready: seconds from the tick to published", "<=", MOST_S).judge(seconds)]
        if sqlmesh:
            runs, content = restated(loaded, cases, root / "sqlmesh")
            ours = table_content(table_folder(ready, SILVER_TRANSACTIONS), SILVER_TRANSACTIONS)
            check_equal({SILVER: ours}, {SILVER: content}, "the platform and SQLMesh")
            bench.print_runs("SQLMesh restates the range between the two days", {"SQLMesh": runs})
            shares = [mine / other.seconds for mine, other in zip(seconds, runs, strict=True)]
            outcomes.append(bench.Goal("Spark kept ready / SQLMesh", "<=", MOST_OF_SQLMESH).judge(shares))
        return outcomes

    bench.measured("A late file", json_path, measure_all)


def print_taken(found: Mapping[str, list[Taken]]) -> None:
    """Both sides."""
    names = ("to_start_s", "to_published_s", "seconds")
    rows = [
        (
            side,
            *(f"{median(getattr(one, name) for one in taken):.1f}" for name in names),
            " ".join(f"{one.seconds:.1f}" for one in taken),
            " ".join(f"{one.load:.1f}" for one in taken),
        )
        for side, taken in found.items()
    ]
    headings = ("Spark", "tick to start s", "start to published s", "together s", "each s", "load average")
    bench.print_table("A late file, median", headings, rows)


if __name__ == "__main__":
    typer.run(main)
