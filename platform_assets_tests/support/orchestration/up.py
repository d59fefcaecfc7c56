"""`platform-assets up` as a person starts it, Dagster's webserver as it starts that, and the browser of this machine.

A webserver alone has nothing to show: what it lets through needs no definitions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from playwright.sync_api import ViewportSize
from pyspark.sql import SparkSession
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from platform_assets.cli.commands.up import webserver_command
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.processes import free_port
from platform_assets_tests.support.world import World

# The daily run would take the files that a test lands for the sensor, if it came in its minutes.
NEW_YEARS_EVE = "59 23 31 12 *"


@dataclass(frozen=True)
class Server:
    """A running `platform-assets up` and the installation it shows."""

    world: World
    url: str

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask the server what no page shows at once."""
        answer = requests.post(f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=30)
        answer.raise_for_status()
        return dict(answer.json()["data"])


@contextmanager
def up(folder: Path, *options: str, **chosen: Any) -> Iterator[Server]:
    """An installation and its UI."""
    settings = load_settings(state=folder / "state", jars=JARS, daily_cron=NEW_YEARS_EVE, **chosen)
    world = World(settings, cast("SparkSession", None))
    port = free_port()
    given = {"state": settings.state, "jars": JARS, "daily_cron": NEW_YEARS_EVE, **chosen}
    environment = os.environ | {f"PLATFORM_{name.upper()}": str(value) for name, value in given.items()}
    environment["PLATFORM_SPARK_CONF"] = OWN_PROCESS
    command = [str(Path(sys.executable).parent / "platform-assets"), "up", "--port", str(port), *options]
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=project_root())
        url = f"http://127.0.0.1:{port}"
        try:
            wait(lambda: answers(f"{url}/server_info"), "the server", 120)
            yield Server(world, url)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def answers(url: str) -> bool:
    """Whether something does, if only by asking for a password."""
    try:
        return requests.get(url, timeout=5).status_code < 500
    except requests.RequestException:
        return False


def wait(happened: Callable[[], bool], what: str, seconds: float) -> None:
    """Until it happened; what did not is named."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(1)


ANSWERS_WITHIN_S = 120
LIMIT = 'mutation { setConcurrencyLimit(concurrencyKey: "attacked", limit: 7) }'
"""Changes something of Dagster that can be looked at."""


@dataclass(frozen=True)
class Webserver:
    """A running one.

    Args:
        port: of this machine.
        output: what it wrote.
        pid: of its process.
        auth: name and password, of whoever has them.
    """

    port: int
    output: Path
    pid: int
    auth: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str = "/graphql", **given: Any) -> requests.Response:
        """A request as a program sends it, without a password unless one is given."""
        with requests.Session() as session:
            session.trust_env = False  # no proxy leads to this machine
            return session.request(method, f"{self.url}{path}", timeout=30, allow_redirects=False, **given)

    def subscribe(self, query: str, path: str = "/graphql", **given: Any) -> dict[str, Any]:
        """What a websocket gets for a subscription; without a password unless one is given."""
        return subscribe(f"ws://127.0.0.1:{self.port}{path}", query, **given)

    def raw(self, sent: bytes) -> list[bytes]:
        """The status of each answer to what is sent as it is, the last of which asks for the end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as stream:
            stream.sendall(sent)
            content = b"".join(iter(lambda: stream.recv(1 << 16), b""))
        return re.findall(rb"HTTP/1\.1 (\d{3}) ", content)

    def limits(self) -> list[str]:
        """What `LIMIT` has changed, as its owner sees it."""
        query = "{ instance { concurrencyLimits { concurrencyKey } } }"
        found = self.ask("POST", json={"query": query}, auth=self.auth).json()
        return [limit["concurrencyKey"] for limit in found["data"]["instance"]["concurrencyLimits"]]


def subscribe(address: str, query: str, **given: Any) -> dict[str, Any]:
    """The first message with data, or the error, that a websocket gets for a subscription of the UI."""

    def told(socket: ClientConnection, kind: str) -> dict[str, Any]:
        while (message := json.loads(socket.recv(timeout=30)))["type"] not in {kind, "error"}:
            pass
        found: dict[str, Any] = message
        return found

    with connect(address, subprotocols=[Subprotocol("graphql-ws")], proxy=None, **given) as socket:
        socket.send(json.dumps({"type": "connection_init"}))
        told(socket, "connection_ack")
        socket.send(json.dumps({"type": "start", "id": "1", "payload": {"query": query}}))
        return told(socket, "data")


def basic(name: str, password: str) -> dict[str, str]:
    """A header with name and password."""
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


@contextmanager
def starting(folder: Path, *, read_only: bool = False, guarded: bool = True, **variables: str) -> Iterator[Webserver]:
    """One that was started and may not answer yet; `wait_for` waits until it does.

    Args:
        folder: for all that it writes.
        read_only: as with `up --read-only`.
        guarded: or Dagster's own, to see what an attack does that nobody is there to refuse.
        variables: of its environment.
    """
    (folder / "home").mkdir(parents=True)
    text = (project_root() / "dagster.yaml").read_text(encoding="utf-8")
    (folder / "home" / "dagster.yaml").write_text(text.replace(".platform/", f"{folder}/"), encoding="utf-8")
    (folder / "workspace.yaml").write_text("load_from: []\n", encoding="utf-8")
    environment = os.environ | {"DAGSTER_HOME": str(folder / "home"), "PLATFORM_STATE": str(folder / "state")}
    port = free_port()
    environment |= {"PLATFORM_UI_URL": f"http://127.0.0.1:{port}"} | variables
    command = webserver_command(port, folder / "workspace.yaml", read_only=read_only)
    if not guarded:
        command = [
            "dagster_webserver" if word == "platform_assets.orchestration.webserver" else word for word in command
        ]
        assert "dagster_webserver" in command
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=project_root(), env=environment, stdout=output, stderr=output, start_new_session=True
        )
        password = variables.get("PLATFORM_UI_PASSWORD")
        try:
            yield Webserver(port, folder / "output", process.pid, ("up", password) if password else None)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # it ends slowly, and nothing of it is kept
            process.wait(30)


def wait_for(server: Webserver) -> None:
    """Until it answers."""
    until = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            server.ask("GET", "/server_info")
            return
        except requests.ConnectionError:
            assert time.monotonic() < until, server.output.read_text()
            time.sleep(0.1)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WINDOW: ViewportSize = {"width": 1500, "height": 1100}
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
