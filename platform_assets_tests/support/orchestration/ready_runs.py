"""Processes that begin with something imported, in a process of its own: in one there is a single original of copies.

python -m platform_assets_tests.support.orchestration.ready_runs changed|killed|alone|ends
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from platform_assets.orchestration.servers import ReadyProcesses, State

RARE = "xmlrpc.client"
"""Nothing else imports it."""
LATER = "SET_ONCE_THE_ORIGINAL_WAS_THERE"
_SUBREAPER = 36


def look(answers: Any) -> None:
    """Say who this is, whose copy, and what it has."""
    answers.put((os.getpid(), os.getppid(), RARE in sys.modules))


def work(answers: Any, until: Any) -> None:
    """Say so, and go on for a while."""
    look(answers)
    until.wait(60)


def changed() -> list[dict[str, object]]:
    """What a process has before and after code was changed, and how it ends."""
    code: list[State] = [frozenset()]
    ready = ReadyProcesses([RARE], lambda: code[0])
    found: list[dict[str, object]] = []
    for state in (frozenset[tuple[str, int, int]](), frozenset({("file.py", 1, 1)})):
        code[0] = state
        answers = ready.Queue()
        process = ready.Process(target=look, args=[answers])
        process.start()
        pid, _, has_it = answers.get(timeout=60)
        process.join(60)
        found.append(
            {
                "has it": has_it,
                "is it": pid == process.pid,
                "code": process.exitcode,
                "alive": process.is_alive(),
            }
        )
    return found


def killed() -> list[dict[str, object]]:
    """Whether a process is taken for alive once that is killed which it is a copy of, and once it has ended; twice."""
    ready = ReadyProcesses([RARE], frozenset)
    return [_outlives(ready), _outlives(ready)]


def alone() -> list[bool]:
    """Whether one is taken for alive whose original is gone, and once it has ended, too, and nobody asked how."""
    ready = ReadyProcesses([RARE], frozenset)
    cast("Any", ctypes.CDLL(None)).prctl(_SUBREAPER, 1)  # it becomes a child of this process, which does not ask
    answers, until = ready.Queue(), ready.Event()
    process = ready.Process(target=work, args=[answers, until])
    process.start()
    _, original, _ = answers.get(timeout=60)
    os.kill(original, signal.SIGKILL)
    _wait_for(lambda: process.exitcode is not None)
    before = process.is_alive()
    until.set()
    _wait_for(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    return [before, process.is_alive()]


def leave(answers: Any) -> None:
    """Have something done at the end, with what the environment has, and say which number NumPy draws."""
    atexit.register(Path(answers[1]).write_text, os.environ.get(LATER, ""))
    answers[0].put(float(sys.modules["numpy"].random.rand()))


def ends() -> dict[str, object]:
    """What two copies of all that runs import have done at their ends, and draw."""
    ready = ReadyProcesses(code=frozenset)
    os.environ[LATER] = "known"
    drawn: list[float] = []
    done: list[str] = []
    with TemporaryDirectory() as folder:
        for number in range(2):
            answers, file = ready.Queue(), Path(folder) / str(number)
            process = ready.Process(target=leave, args=[(answers, str(file))])
            process.start()
            drawn.append(answers.get(timeout=60))
            process.join(60)
            done.append(file.read_text() if file.exists() else "")
    return {"done": done, "drawn": drawn}


def _outlives(ready: ReadyProcesses) -> dict[str, object]:
    answers, until = ready.Queue(), ready.Event()
    process = ready.Process(target=work, args=[answers, until])
    process.start()
    _, original, has_it = answers.get(timeout=60)
    os.kill(original, signal.SIGKILL)
    _wait_for(lambda: process.exitcode is not None)
    then = process.is_alive()
    until.set()
    _wait_for(lambda: not process.is_alive())
    return {"has it": has_it, "then": then}


def _wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


if __name__ == "__main__":
    print(json.dumps({"changed": changed, "killed": killed, "alone": alone, "ends": ends}[sys.argv[1]]()))
