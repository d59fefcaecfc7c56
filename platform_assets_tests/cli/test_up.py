"""What `up` says before it is silent, what it starts and ends together, and a storage that cannot be used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from platform_assets.cli import processes as supervised
from platform_assets.cli.commands.up import describe_automation
from platform_assets.cli.processes import PATIENCE_S, Processes
from platform_assets.cli.session import URL, DagsterStorageError, dagster_instance, storage_error
from platform_assets.contracts import Catalogue, Comparison
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.processes import free_port

__all__ = ["state"]
"""Fixtures."""


def test_it_says_what_runs_by_itself_and_when(settings: Settings) -> None:
    chosen = settings.model_copy(update={"daily_cron": "30 2 * * *"})
    catalogue = load_catalogue(settings)
    words = describe_automation(chosen, catalogue)
    assert "files that land are taken within half a minute" in words
    assert "all tables at '30 2 * * *'" in words
    assert "maintenance at '0 4 * * 0'" in words
    assert "comparisons" not in words
    compared = [replace(c, comparisons=(Comparison("copy", "/copy"),)) for c in catalogue.domains[0].tables]
    catalogue = Catalogue.of([replace(catalogue.domains[0], tables=tuple(compared))])
    assert "comparisons at '0 5 * * *'" in describe_automation(chosen, catalogue)


def test_a_folder_for_temporary_files_without_room_for_a_socket_is_told_before_anything_starts(
    tmp_path: Path, state: Path
) -> None:
    """Dagster answers at sockets, and would say so with every request to one, for a minute."""
    long = tmp_path / ("long" * 25)
    long.mkdir()
    said = run_apart("up", "--port", str(free_port()), TMPDIR=str(long))
    assert said.code == 3
    assert "too long a path for sockets" in said.err
    assert "TMPDIR" in said.err


SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def wait(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 2 * PATIENCE_S
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


def number_in(file: Path) -> int:
    wait(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def is_alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().split()[2] != "Z"


def test_the_first_that_ends_is_named_and_all_end_with_what_they_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the runs of a code server that was killed, and one that does not listen and is not waited for long."""
    monkeypatch.setattr(supervised, "PATIENCE_S", 1.0)
    child = (
        f"import subprocess, os, sys; child = subprocess.Popen({SLEEP}); "
        "print(child.pid, file=open(sys.argv[1], 'w'), flush=True); os.kill(os.getpid(), 9)"
    )
    deaf = "import os, sys, signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(600)"
    processes = Processes(tmp_path, dict(os.environ), tmp_path / "temporary")
    processes.start("the daemon", [sys.executable, "-c", deaf])
    processes.start("the code server", [sys.executable, "-c", child, str(tmp_path / "child")])
    try:
        assert processes.next_ended() == ("the code server", "was ended by SIGKILL")
        left = number_in(tmp_path / "child")
        assert is_alive(left)
    finally:
        processes.end()
    assert not is_alive(left)
    assert not any(map(is_alive, processes._groups))


def test_a_secret_is_for_one_alone(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ.get('WORD'), os.environ['ALL'], file=open(sys.argv[1], 'w'), flush=True)"
    processes = Processes(tmp_path, {"ALL": "common"}, tmp_path / "temporary")
    for name, secrets in (("one", {"WORD": "geheim"}), ("other", None)):
        processes.start(name, [sys.executable, "-c", code, str(tmp_path / name)], secrets)
    assert {processes.next_ended()[0], processes.next_ended()[0]} == {"one", "other"}
    processes.end()
    assert (tmp_path / "one").read_text() == "geheim common\n"
    assert (tmp_path / "other").read_text() == "None common\n"


def test_what_they_write_is_passed_on_until_they_are_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = "2026-01-02 03:04:05 +0000 - dagster - INFO - refresh - 1a - taking files\\n  more of it"
    code = f"import sys, time\nprint('{run}\\nout', flush=True)\ntry: time.sleep(600)\nexcept KeyboardInterrupt: 1 / 0"
    processes = Processes(tmp_path, dict(os.environ), tmp_path / "temporary")
    processes.start("one", [sys.executable, "-c", code])
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "out" in said

    wait(heard)
    processes.end()
    said += capfd.readouterr().err
    assert "Error" not in said
    assert "taking files" not in said, "it is on the page of its run"
    assert "more of it" not in said


KILLED = f"""
import os, sys, time
from pathlib import Path
from platform_assets.cli.processes import Processes

processes = Processes(Path("."), dict(os.environ), Path(sys.argv[1]))
processes.start("one", {SLEEP})
print(processes._groups[0], flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_had_started_is_ended_and_its_folder_removed(tmp_path: Path) -> None:
    (folder := tmp_path / "of the\nkilled").mkdir()
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    started = int(killed.stdout.readline())
    assert is_alive(started)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    wait(lambda: not is_alive(started) and not folder.exists())


SERVER = "storage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_POSTGRES_URL\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_text(SERVER)
    return tmp_path


def test_a_server_that_does_not_answer_is_told_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(URL, f"postgresql://ada:s3cr%2Ft@127.0.0.1:{free_port()}/x")
    monkeypatch.setattr("dagster_postgres.utils.time", SimpleNamespace(sleep=lambda _: None))
    with pytest.raises(DagsterStorageError, match="Connection refused") as caught, dagster_instance(home):
        pass
    assert URL in caught.value.todo
    assert "s3cr" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert not caplog.messages


def test_the_variable_that_dagster_yaml_asks_for_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(DagsterStorageError, match=rf"{URL} says, which is not set"), dagster_instance(home):
        pass


def test_packages_that_are_not_installed_are_named() -> None:
    told = storage_error(ModuleNotFoundError("No module named 'dagster_postgres'"), {})
    assert told is not None
    assert "--extra postgres" in told.todo
