"""Processes of runs begin with what they need imported, but for the user's code, while it is what is on the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from platform_assets.orchestration.warm.runs import ReadyProcesses, State, code_on_disk
from platform_assets.settings import project_root

RARE = "xmlrpc.client"
"""Nothing else imports it."""
LOOK = """
import json, os, sys, threading
import platform_assets.orchestration.warm.imported
print(json.dumps({
    "domains": [name for name in sys.modules if name.startswith("platform_assets.domains")],
    "threads": threading.active_count(),
    "has": [name in sys.modules for name in ("dagster", "pyspark.sql", "platform_assets.engine.refresh")],
    "files": [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if int(number) > 2
              and os.path.exists(f"/proc/self/fd/{number}")],
}))
"""


def look(answers: Any) -> None:
    answers.put((os.getpid(), os.getppid(), RARE in sys.modules))


def work(answers: Any, until: Any) -> None:
    look(answers)
    until.wait(60)


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_they_begin_with_what_was_imported_and_anew_where_code_was_changed() -> None:
    code: list[State] = [frozenset()]
    ready = ReadyProcesses([RARE], lambda: code[0])
    found: list[bool] = []
    for state in (frozenset[tuple[str, int, int]](), frozenset({("file.py", 1, 1)})):
        code[0] = state
        answers = ready.Queue()
        process = ready.Process(target=look, args=[answers])
        process.start()
        pid, _, has_it = answers.get(timeout=60)
        assert pid == process.pid
        found.append(has_it)
        process.join(60)
        assert process.exitcode == 0
        assert not process.is_alive()
    assert found == [True, False]


def test_they_go_on_where_the_process_that_they_are_copies_of_is_killed() -> None:
    ready = ReadyProcesses([RARE], frozenset)
    outlives_its_original(ready)
    outlives_its_original(ready)  # of another one, which was started for it


def outlives_its_original(ready: ReadyProcesses) -> None:
    answers, until = ready.Queue(), ready.Event()
    process = ready.Process(target=work, args=[answers, until])
    process.start()
    _, original, has_it = answers.get(timeout=60)
    assert has_it
    os.kill(original, signal.SIGKILL)
    wait_for(lambda: process.exitcode is not None)
    assert process.is_alive(), "nobody may take it for dead"
    until.set()
    wait_for(lambda: not process.is_alive())


def test_what_they_have_is_nothing_of_the_user_and_nothing_that_copies_cannot_share() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], cwd=project_root(), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["has"] == [True, True, True]
    assert found["domains"] == []
    assert found["threads"] == 1
    assert [file for file in found["files"] if not file.startswith(("pipe:", "/dev/", "anon_inode:"))] == []


def test_code_is_this_package_and_what_is_installed() -> None:
    files = {path for path, _, _ in code_on_disk()}
    assert any(path.endswith("engine/refresh.py") for path in files)
    assert any(path.endswith("site-packages") for path in files)
    assert not any("/platform_assets/domains/" in path for path in files)
