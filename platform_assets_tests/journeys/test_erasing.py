"""Somebody wants their rows erased, and it is done by commands alone; one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets.lakehouse.layout import Lake
from platform_assets_tests.support.cli.commands import PROBE, Run, run, state
from platform_assets_tests.support.installation import OWN_PROCESS
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.visits import DOMAIN, WHO, Visits, files_with, loaded

__all__ = ["run", "state"]
"""Fixtures of the command line."""

KEY = ("raw.visits", "--key", f"person={WHO}", "--reason", "request 17", "--by", "Zoë")


@pytest.fixture
def visits(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> Visits:
    """The installation that commands see."""
    for name, value in {"DOMAINS": DOMAIN, "CALENDAR_LAST": "2017-01-04", "TODAY": "2017-01-04"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    return lakes.copy(state, loaded, True)


def erase(*args: str, failpoint: str = "") -> CompletedProcess[str]:
    """The command as a process with a Spark of its own."""
    own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "PLATFORM_SPARK_CONF": OWN_PROCESS, VARIABLE: failpoint}
    started = [sys.executable, "-c", PROBE, "erase", *KEY, *args]
    return subprocess.run(started, capture_output=True, text=True, env=os.environ | own, timeout=240)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_person_is_erased_by_commands_alone_though_one_is_killed(run: Run, visits: Visits, tmp_path: Path) -> None:
    """Three processes, each with a Spark of its own: one is killed."""
    lake, backup = Lake.at(visits.world.settings.lake), str(tmp_path / "backup")
    assert run("backup", backup).code == 0
    dead = erase("--yes", failpoint="publish.after_table:2")
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert run("recover").code == 0
    done = erase("--yes", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["remembered"], shown["left"], shown["not_refreshed"]) == (True, {}, {})
    assert str(WHO) not in done.stdout + done.stderr + dead.stdout + dead.stderr
    assert files_with(lake) == set()
    assert run("audit", "verify", "--all", "--read-all").code == 0
    [made] = [each for each in run("releases", "--json").json if each["kind"] == "erasure"]
    assert (made["who"], made["why"]) == ("Zoë", "request 17")
    assert "erasure" in run("audit", "show", "silver.visits", "2017-01-02").out
    old = run("read", "silver.visits", "--release", "1")
    assert (old.code, "rows that it may show were erased for good" in " ".join(old.err.split())) == (3, True)
    assert run("backup", backup, "--keep", "1").code == 0
    assert files_with(Lake.at(f"{backup}/lake")) == set()
    again = erase("--yes")
    assert (again.returncode, "was erased before" in again.stdout) == (0, True), again.stderr
    assert run("erase", *KEY, "--lift").code == 0
    assert run("status").code in (0, 1)
