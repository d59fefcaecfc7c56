"""What `up` starts ends together: with the first that ends, with `up`, and where `up` is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_assets.cli.processes import PATIENCE_S, Processes, describe_end

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


def test_how_a_process_ended_is_said_in_words() -> None:
    assert describe_end(1) == "ended with exit code 1"
    assert describe_end(-9) == "was ended by SIGKILL"


def test_the_first_that_ends_is_named_and_all_end_with_what_they_started(tmp_path: Path) -> None:
    """As the runs of a code server that was killed, and one that does not listen."""
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
    code = "import sys, time\nprint('out', flush=True)\ntry: time.sleep(600)\nexcept KeyboardInterrupt: 1 / 0"
    processes = Processes(tmp_path, dict(os.environ), tmp_path / "temporary")
    processes.start("one", [sys.executable, "-c", code])
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "out" in said

    wait(heard)
    processes.end()
    assert "Error" not in said + capfd.readouterr().err


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
