"""Processes that begin with something imported, in a process of its own: in one there is a single original of copies.

python -m platform_assets_tests.support.orchestration.ready_runs changed|ends
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from platform_assets.orchestration.servers import ReadyProcesses, State

RARE = "xmlrpc.client"
"""Nothing else imports it."""
LATER = "SET_ONCE_THE_ORIGINAL_WAS_THERE"


def look(answers: Any) -> None:
    """Say who this is, whose copy, and what it has."""
    answers.put((os.getpid(), os.getppid(), RARE in sys.modules))


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


if __name__ == "__main__":
    print(json.dumps({"changed": changed, "ends": ends}[sys.argv[1]]()))
