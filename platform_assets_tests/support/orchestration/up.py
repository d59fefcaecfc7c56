"""`platform-assets up` as a person starts it, in a process of its own, and the installation it shows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import requests
from pyspark.sql import SparkSession

from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.orchestration.webserver import free_port
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
