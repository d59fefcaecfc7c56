"""What ends a process, or takes all its memory, ends another one: whoever asked goes on, and knows what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from platform_assets.sources.apart import UnendurableError, ahead, apart, rest


def add(one: int, other: int) -> int:
    return one + other


def own_number() -> int:
    return os.getpid()


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def end_once(mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os.abort()
    return "the second time"


def take_much() -> int:
    return len(bytearray(64 << 30))


def print_much() -> str:
    os.write(1, b"x" * 100_000)
    return "printed"


def answer_much() -> str:
    return "x" * (8 << 20)


class UnsendableError(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def fail(error: str) -> None:
    raise FileNotFoundError(2, "not there") if error == "sent" else UnsendableError("cannot", "be sent")


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_and_errors_come_back_from_one_process() -> None:
    assert apart(add, 2, 3) == 5
    assert apart(own_number) == apart(own_number) != os.getpid()
    assert apart(print_much) == "printed"
    with pytest.raises(FileNotFoundError, match="not there"):
        apart(fail, "sent")
    with pytest.raises(RuntimeError, match="UnsendableError: cannot be sent"):
        apart(fail, "in words")


def test_an_answer_that_is_too_long_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_assets.sources.apart._MOST_ANSWER", 1 << 16)
    tracemalloc.start()
    try:
        with pytest.raises(UnendurableError, match="ends the process"):
            apart(answer_much)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert apart(add, 2, 3) == 5


def test_what_ends_the_process_twice_is_told_and_the_next_question_is_answered() -> None:
    for number in (signal.SIGABRT, signal.SIGSEGV):
        with pytest.raises(UnendurableError, match=f"ends the process that looks into it .{number.name}"):
            apart(end_by, number)
    assert apart(add, 2, 3) == 5


def test_a_process_that_dies_once_is_no_verdict(tmp_path: Path) -> None:
    assert apart(end_once, tmp_path / "mark") == "the second time"


def test_a_process_that_somebody_kills_says_nothing_of_what_it_did() -> None:
    with pytest.raises(OSError, match="was killed"):
        apart(end_by, signal.SIGKILL)


def test_it_can_be_started_before_anything_is_asked() -> None:
    os.kill(apart(own_number), signal.SIGKILL)
    with pytest.raises(OSError, match="killed"):
        apart(own_number)
    before = children()
    ahead(own_number)
    [started] = children() - before
    assert apart(own_number) == started


def test_one_that_cannot_be_started_yet_is_nobodys_problem_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest()
    with monkeypatch.context() as now:
        now.setattr(sys, "executable", "/no/python")
        ahead(own_number)
        with pytest.raises(FileNotFoundError):
            apart(own_number)
    assert apart(own_number)


def children() -> set[int]:
    every = (task.joinpath("children").read_text() for task in Path("/proc/self/task").iterdir())
    return {int(number) for numbers in every for number in numbers.split()}


def test_it_ends_with_whoever_started_it() -> None:
    """Also with one that is killed, and though a Ctrl-C is not for it."""
    code = f"import os; from {__name__} import *; print(apart(own_number), flush=True); os.abort()"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert asked.returncode == -signal.SIGABRT
    until = time.monotonic() + 30
    while is_running(int(asked.stdout)):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_memory_has_a_bound() -> None:
    with pytest.raises(UnendurableError, match="takes more than 4 GiB to look into"):
        apart(take_much)


def test_an_interruption_leaves_no_answer_for_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    number = apart(own_number)

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("platform_assets.sources.apart._line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            apart(add, 1, 1)
    assert not is_running(number)
    assert apart(add, 2, 3) == 5
