"""An installation in which Spark is kept ready, and processes that work with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from platform_assets_tests.support.installation import JARS, OWN_PROCESS

PATIENCE_S = 300
UNREHEARSED = "unrehearsed"
CLIENT = """
import json, sys
from pyspark import SparkContext
from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session
spark = create_session(load_settings(), record_classes=False)
found = {"jvm": int(SparkContext._jvm.java.lang.ProcessHandle.current().pid())}
exec(sys.argv[1])
print(json.dumps(found), flush=True)
if sys.stdin.readline():
    stop_session(spark)
"""


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.2)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class Warm:
    """An installation in which Spark is kept ready.

    Args:
        state: its folder.
        folder: of the socket.
        errors: where keepers write; where this process does by default.
    """

    state: Path
    folder: Path
    errors: int | None = None
    environ: dict[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def keep(self, *options: str, **settings: str) -> int:
        """Keep Spark ready from now on; the keeper's process, once it is."""
        keeper = self.begin(*options, **settings)
        wait_for(self.is_ready)
        return keeper

    def begin(self, *options: str, **settings: str) -> int:
        """Start to keep Spark ready; the keeper's process."""
        self.environ = {
            **os.environ,
            "PLATFORM_STATE": str(self.state),
            "PLATFORM_JARS": str(JARS),
            "PLATFORM_WARM": "true",
            "PLATFORM_SPARK_CONF": OWN_PROCESS,
            "PLATFORM_SPARK_DRIVER_MEMORY": "1g",
            "PLATFORM_SETTLE_S": "0",
            **settings,
        }
        command = [
            sys.executable,
            "-m",
            "platform_assets.orchestration.warm.keeper",
            str(self.folder / "warm.sock"),
            *options,
        ]
        self._started.append(subprocess.Popen(command, env=self.environ, stderr=self.errors, text=True))
        return self._started[-1].pid

    def first_line(self) -> str:
        """What a keeper says to whom there is a pipe, first."""
        said = self._started[0].stderr
        assert said is not None
        return said.readline()

    def is_ready(self) -> bool:
        """Whether somebody who asks now finds it."""
        return (self.state / "warm.sock").is_socket()

    def way(self) -> int | None:
        """Tells the way to a keeper's JVM from that to another one; None while there is none."""
        try:
            return (self.state / "warm.sock").lstat().st_ctime_ns
        except FileNotFoundError:
            return None

    def client(self, code: str = "", **settings: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        """A process with a session, which it stops once it is told to, and what it found."""
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, code],
            env=self.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def worked(self, code: str = "", **settings: str) -> dict[str, Any]:
        """What a process found that has worked and stopped."""
        process, found = self.client(code, **settings)
        process.communicate("stop\n", timeout=PATIENCE_S)
        return found

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


@contextmanager
def an_installation(folder: Path) -> Iterator[Warm]:
    """Nothing is kept yet."""
    with TemporaryDirectory(prefix="warm-") as name:
        found = Warm(folder / "state", Path(name))
        try:
            yield found
        finally:
            found.stop()
