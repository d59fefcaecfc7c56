"""What `up` starts is kept going: who dies is started again with growing pauses, and given up in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.cli import supervision, watchdog
from platform_assets.cli.relay import Relay
from platform_assets.cli.supervision import Part, PartError, describe_end, end, keep_going, pause_before_restart_s
from platform_assets.cli.watchdog import PATIENCE_S


def test_pauses_grow_until_a_part_that_always_dies_at_once_is_given_up() -> None:
    pauses = [pause_before_restart_s([0.5] * deaths) for deaths in range(1, 6)]
    assert pauses == [1, 2, 4, 8, None]


def test_a_part_that_worked_for_long_is_started_again_as_if_for_the_first_time() -> None:
    assert pause_before_restart_s([0.5, 0.5, 0.5, 0.5, 3600]) == 1
    assert pause_before_restart_s([0.5, 0.5, 0.5, 0.5, 3600, 0.5]) == 1
    assert pause_before_restart_s([3600.0] * 100) == 1


def test_how_a_process_ended_is_said_in_words() -> None:
    assert describe_end(1) == "ended with exit code 1"
    assert describe_end(-9) == "was ended by SIGKILL"


class _EnoughError(Exception):
    """The test has seen what it wanted."""


def test_one_that_is_killed_comes_back_and_the_others_do_not_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "_FIRST_PAUSE_S", 0.1)
    sleep = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(600)"
    parts = [Part(name, [sys.executable, "-c", sleep, str(tmp_path / name)]) for name in ("one", "other")]
    told: list[str] = []

    def pids(name: str) -> list[int]:
        file = tmp_path / name
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def notice(text: str) -> None:
        told.append(text)

    def looked(_seconds: float) -> None:
        if len(pids("one")) == 1 and pids("other") and not told:
            os.kill(pids("one")[0], signal.SIGKILL)
        if len(pids("one")) == 2:
            raise _EnoughError
        time.sleep_really(0.02)  # type: ignore[attr-defined]

    monkeypatch.setattr(time, "sleep_really", time.sleep, raising=False)
    monkeypatch.setattr(time, "sleep", looked)
    with pytest.raises(_EnoughError):
        keep_going(parts, tmp_path, dict(os.environ), notice)
    monkeypatch.undo()
    assert told == [
        "one was ended by SIGKILL; it is started again in 0 s, the rest goes on",
        "one is started again",
    ]
    assert len(pids("other")) == 1
    end(parts)
    for pid in (*pids("one"), *pids("other")):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_that_dies_at_once_again_and_again_is_given_up_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "_FIRST_PAUSE_S", 0.01)
    part = Part("the webserver", [sys.executable, "-c", "raise SystemExit(3)"], lambda: "the port is taken")
    told: list[str] = []
    with pytest.raises(PartError, match=r"ended with exit code 3, 5 times.*given up: the port is taken"):
        keep_going([part], tmp_path, dict(os.environ), told.append)
    assert len(told) == 8, "four times that it died, and that it is started again"
    end([part])


def test_one_that_the_others_do_not_need_is_given_up_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(supervision, "LOOK_S", 0.02)
    parts = [
        Part("the Spark that is kept ready", [sys.executable, "-c", "raise SystemExit(1)"], needed=False),
        Part("the daemon", [sys.executable, "-c", "import time; time.sleep(600)"]),
    ]
    told: list[str] = []

    def notice(text: str) -> None:
        told.append(text)
        if text.startswith("the daemon"):
            raise _EnoughError
        if "given up" in text and parts[1]._process is not None:
            parts[1]._process.kill()

    with pytest.raises(_EnoughError):
        keep_going(parts, tmp_path, dict(os.environ), notice)
    assert told[-2] == (
        "the Spark that is kept ready ended with exit code 1, 5 times within 60 seconds of its start, and is given up; "
        "the rest goes on without it"
    )
    end(parts)


def test_a_secret_is_for_one_part_alone_each_time_it_is_started(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ.get('WORD'), os.environ['ALL'], file=open(sys.argv[1], 'a'), flush=True)"
    parts = [Part(name, [sys.executable, "-c", code, str(tmp_path / name)]) for name in ("one", "other")]
    parts[0].secrets = {"WORD": "geheim"}
    for part in (parts[0], *parts):
        part.start(tmp_path, {"ALL": "common"})
        while part.died() is None:
            time.sleep(0.05)
    assert (tmp_path / "one").read_text() == "geheim common\n" * 2
    assert (tmp_path / "other").read_text() == "None common\n"
    assert "geheim" not in repr(parts)


def test_what_a_part_left_behind_when_it_was_killed_ends_with_it(tmp_path: Path) -> None:
    """As the runs of a code server that somebody killed."""
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "print(child.pid, file=open(sys.argv[1], 'w'), flush=True); time.sleep(600)"
    )
    part = Part("the code server", [sys.executable, "-c", code, str(tmp_path / "pid")])
    part.start(tmp_path, dict(os.environ))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    assert part._process is not None
    part._process.kill()
    while part.died() is None:
        time.sleep(0.05)
    os.kill(child, 0)
    part.start(tmp_path, dict(os.environ))
    end([part])
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


WATCHED = """
import subprocess, sys, time
from platform_assets.cli.watchdog import Watchdog

watchdog = Watchdog()
stubborn = "import signal, time; signal.signal(2, signal.SIG_IGN); print('.', flush=True); time.sleep(600)"
parts = [
    subprocess.Popen(["sh", "-c", "sleep 600 & echo . ; wait"], stdout=subprocess.PIPE, start_new_session=True),
    subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True),
]
for part in parts:
    watchdog.end_with_me(part.pid)
    part.stdout.readline()
watchdog.remove_with_me(sys.argv[2])
print(*(part.pid for part in parts), flush=True)
if sys.argv[1] == "dismiss":
    watchdog.dismiss()
else:
    time.sleep(600)
"""


def test_what_a_killed_process_had_started_is_ended_with_all_that_it_started_in_turn(tmp_path: Path) -> None:
    """One part does not end when it is asked to: it takes as long as one is patient with it."""
    folder = tmp_path / "of the\nkilled"
    (folder / "in it").mkdir(parents=True)
    (tmp_path / "of the").mkdir()
    watched = subprocess.Popen([sys.executable, "-c", WATCHED, "sleep", str(folder)], stdout=subprocess.PIPE, text=True)
    assert watched.stdout is not None
    groups = [int(pid) for pid in watched.stdout.readline().split()]
    assert all(map(is_alive, groups))
    watched.kill()
    watched.wait()
    until = time.monotonic() + 2 * PATIENCE_S
    while any(map(is_alive, groups)):
        assert time.monotonic() < until, "it is still there"
        time.sleep(0.1)
    while folder.exists():
        assert time.monotonic() < until, "its folder is still there"
        time.sleep(0.1)
    assert (tmp_path / "of the").is_dir()


def test_a_watchdog_that_is_dismissed_ends_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WATCHED, "dismiss", str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30)
    groups = [int(pid) for pid in done.stdout.split()]
    assert len(groups) == 2
    assert tmp_path.is_dir()
    assert all(map(is_alive, groups))
    for group in groups:
        os.killpg(group, signal.SIGKILL)


def test_a_watchdog_forgets_what_is_gone_since_its_number_may_become_somebody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody can wait until a system gives a number again, so what there is is played."""
    there, signalled = {1, 2}, set[int]()

    def words() -> Iterator[str]:
        yield "1\n"
        there.discard(1)
        yield "2\n"
        there.add(1)

    def ended(group: int, number: int) -> None:
        signalled.add(group)
        there.discard(group)

    monkeypatch.setattr(watchdog, "is_there", there.__contains__)
    monkeypatch.setattr(watchdog, "signal_group", ended)
    watchdog._watch(words())
    assert signalled == {2}


def is_alive(group: int) -> bool:
    """Whether a process group has a process that is more than an entry in the table."""
    states = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], stdout=subprocess.PIPE, text=True, check=True).stdout
    return any(int(pgid) == group and not stat.startswith("Z") for pgid, stat in map(str.split, states.splitlines()))


def test_what_parts_write_is_passed_on_until_they_stop_and_kept_from_then_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    relay = Relay(tmp_path / "logs" / "stopped.log", coloured=True)
    says = "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True); input(); 1 / 0"
    part = subprocess.Popen(
        [sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=relay.pipe, stderr=relay.pipe, text=True
    )
    said = ""
    until = time.monotonic() + 30
    while "err" not in said and time.monotonic() < until:
        said += capfd.readouterr().err
    assert said == "out\nerr\n"
    relay.hush()
    part.communicate("\n")
    while "ZeroDivisionError" not in (kept := (tmp_path / "logs" / "stopped.log").read_text()):
        assert time.monotonic() < until
    assert kept.startswith("Traceback")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("coloured", [True, False])
def test_what_parts_write_has_colours_only_where_they_are_wanted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], coloured: bool
) -> None:
    relay, until, said = Relay(tmp_path / "stopped.log", coloured=coloured), time.monotonic() + 30, ""
    for text in (b"\x1b[32m2017-01-01\x1b[0m a li", b"ne \x1b", b"[3", b"1mred\x1b[0m", b" end\n"):
        os.write(relay.pipe, text)
        time.sleep(0.05)  # so that they are read one by one
    while "end" not in said and time.monotonic() < until:
        said += capfd.readouterr().err
    coloured_line = "\x1b[32m2017-01-01\x1b[0m a line \x1b[31mred\x1b[0m end\n"
    assert said == (coloured_line if coloured else "2017-01-01 a line red end\n")
    relay.hush()
    os.write(relay.pipe, b"\x1b[31mred\x1b[0m end\n")
    while not (kept := (tmp_path / "stopped.log").read_text()):
        assert time.monotonic() < until
    assert kept == "red end\n"
