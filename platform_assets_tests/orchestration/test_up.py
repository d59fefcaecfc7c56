"""`up` with everything on, as a person starts it: what lies there is computed, nothing is left running, or known."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from platform_assets.ledger.ledger import Ledger
from platform_assets.orchestration.instance.launcher import REFRESH_POOL, TABLES_POOL
from platform_assets.settings import project_root
from platform_assets_tests.support.installation import OWN_PROCESS
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, RAW, SENSORS, SILVER, land
from platform_assets_tests.support.orchestration.up import Server, up, wait
from platform_assets_tests.support.processes import processes_of, started_from
from platform_assets_tests.support.world import World

PATIENCE_S = 240
POOLS = "{ instance { concurrencyLimits { concurrencyKey } } }"
TICKS = """{
  sensorsOrError(repositorySelector: {repositoryLocationName: "platform_assets", repositoryName: "__repository__"}) {
    ... on Sensors { results { name sensorState { ticks(limit: 1) { skipReason } } } }
  }
}"""

FORCE = json.dumps({"ops": {"silver_readings": {"config": {"force": True}}}})
UP = "from platform_assets.cli import main; main()"


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(1)


@contextmanager
def command(*options: str) -> Iterator[str]:
    """The command, and where its UI is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", UP, "up", "--port", str(port), *options], cwd=project_root(), start_new_session=True
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(address: str, query: str) -> dict[str, object]:
    """GraphQL; no answer is an empty one."""
    request = urllib.request.Request(
        f"{address}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, object] = json.load(answer)
            return found
    except OSError:
        return {}


@pytest.mark.proof
def test_files_that_lie_there_are_computed_and_a_viewer_can_only_look(
    readings: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in DAYS:
        land(readings, day, day)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = readings.settings.state

    def computed() -> bool:
        with Ledger.open(readings.settings.ledger_url.get_secret_value(), read_only=True) as ledger:
            return len(ledger.current_days("gold.sensor_week")) == len(DAYS)

    with command() as address:
        wait_for(computed)
        pools = ask(address, POOLS)
        assert TABLES_POOL in str(pools)
        assert REFRESH_POOL in str(pools)
        wait_for(lambda: "nothing to do" in str(ask(address, TICKS)))
    wait_for(lambda: not started_from(state))

    with command("--read-only") as address:
        wait_for(lambda: "permissions" in str(ask(address, "{ permissions { permission value } }")))
        allowed = ask(address, "{ permissions { permission value } }")
        assert "True" not in str(allowed)
    wait_for(lambda: not started_from(state))


@pytest.mark.proof
def test_an_up_that_is_killed_leaves_nothing_running(readings: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = readings.settings.state
    with command() as address:
        wait_for(lambda: "nothing to do" in str(ask(address, TICKS)))
        kill(state, " up --port")
        wait_for(lambda: not started_from(state))


RUNS = "{ runsOrError { ... on Runs { results { jobName status parentRunId tags { key value } } } } }"
BACKFILLS = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { status } } } }"


def kill(state: Path, what: str) -> None:
    """Kill -9 for a part of `up`."""
    [pid] = [pid for pid, command in processes_of(state).items() if what in command]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_killed_run_of_a_backfill_is_tried_again_and_a_killed_part_ends_all_of_up(
    readings: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in DAYS:
        land(readings, day, day)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = readings.settings.state

    def runs(address: str, job: str) -> list[dict[str, Any]]:
        answer = cast("dict[str, Any]", ask(address, RUNS))
        results = answer["data"]["runsOrError"]["results"] if answer.get("data") else []
        return [run for run in results if run["jobName"] == job]

    def in_state(address: str, job: str, *states: str) -> bool:
        return [run["status"] for run in runs(address, job)] == list(states)

    with command() as address:
        wait_for(lambda: in_state(address, "refresh", "SUCCESS"))

        keys = ", ".join(f"{{path: {json.dumps([table])}}}" for table in (RAW, SILVER, GOLD))
        given = f"assetSelection: [{keys}], partitionNames: {json.dumps(DAYS)}, runConfigData: {json.dumps(FORCE)}"
        launch = f"mutation {{ launchPartitionBackfill(backfillParams: {{ {given} }}) {{ __typename }} }}"
        wait_for(lambda: "LaunchBackfillSuccess" in str(ask(address, launch)))
        wait_for(lambda: in_state(address, "__ASSET_JOB", "STARTED"))
        wait_for(lambda: any("SparkSubmit" in command for command in started_from(state)))
        newest = max((state / "runs").glob("*.lock"), key=lambda file: file.stat().st_mtime)
        os.kill(int(newest.read_text()), signal.SIGKILL)
        wait_for(lambda: in_state(address, "__ASSET_JOB", "SUCCESS", "FAILURE"))
        again, killed = runs(address, "__ASSET_JOB")
        assert again["parentRunId"]
        assert {"key": "dagster/will_retry", "value": "true"} in killed["tags"]
        wait_for(lambda: "COMPLETED_SUCCESS" in str(ask(address, BACKFILLS)))
        kill(state, "orchestration.servers daemon")
        wait_for(lambda: not started_from(state))
    wait_for(lambda: not started_from(state))


@pytest.mark.proof
def test_runs_work_with_the_spark_that_is_kept_ready_and_nothing_is_left_of_it(
    readings: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PLATFORM_WARM", "true")
    monkeypatch.setenv("PLATFORM_SPARK_CONF", OWN_PROCESS)
    state = readings.settings.state
    link, jvms, copies = state / "warm.sock", set[int](), set[int]()

    def computed() -> bool:
        for pid, command in processes_of(state).items():
            (jvms if "/java " in command else copies if "multiprocessing.forkserver" in command else set()).add(pid)
        with Ledger.open(readings.settings.ledger_url.get_secret_value(), read_only=True) as ledger:
            return len(ledger.current_days("gold.sensor_week")) == len(DAYS)

    with command():
        wait_for(link.exists)
        for day in DAYS:
            land(readings, day, day)
        wait_for(computed)
        assert len(jvms) == 1, "no run started its own"
        assert len(copies) > 1, "a run began with all imported"
    wait_for(lambda: not started_from(state))
    assert not link.is_symlink()

    with command():
        wait_for(link.exists)
        kill(state, " up --port")
        wait_for(lambda: not started_from(state))


PASSWORD = "correct horse battery"
FIRST = date(2017, 1, 1)
LOADED = "{ repositoriesOrError { __typename } }"
WEBSERVER = "orchestration.webserver"


def loaded(server: Server) -> bool:
    """Whether it knows the definitions, asked with the password."""
    try:
        asked = requests.post(f"{server.url}/graphql", json={"query": LOADED}, timeout=30, auth=("anna", PASSWORD))
    except requests.ConnectionError:
        return False
    return "RepositoryConnection" in asked.text


def listening(processes: dict[int, str]) -> set[str]:
    """Addresses and ports at which processes listen, as the kernel writes them."""
    open_files = set()
    for pid in processes:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                open_files.add(str(file.readlink()))
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in open_files}


@pytest.mark.proof
@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_nothing_but_its_webserver_gets_the_password_or_listens_and_that_on_this_machine_alone(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_WEBSERVER_HOST", "0.0.0.0")
    chosen = {"calendar_first": FIRST, "calendar_last": FIRST, "today": FIRST}
    with up(tmp_path, *options, domains=SENSORS, ui_password=PASSWORD, **chosen) as server:
        wait(lambda: loaded(server), "the definitions", 120)
        found = processes_of(server.world.settings.state)
        assert any("platform_assets.definitions" in command for command in found.values()), "the code server"
        assert listening(found) == {f"0100007F:{int(server.url.rpartition(':')[2]):04X}"}

        assert not [command for command in found.values() if PASSWORD in command]
        knowing = [pid for pid in found if PASSWORD.encode() in Path(f"/proc/{pid}/environ").read_bytes()]
        webserver, command = sorted(knowing, key=lambda pid: WEBSERVER not in found[pid])
        assert WEBSERVER in found[webserver]
        assert " up --port " in found[command]

    logs = [tmp_path / "up.log", *(file for file in server.world.settings.state.rglob("*") if file.is_file())]
    assert not [log for log in logs if PASSWORD.encode() in log.read_bytes()]
    assert "for the password in PLATFORM_UI_PASSWORD" in (tmp_path / "up.log").read_text()
