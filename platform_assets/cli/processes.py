"""Run processes that belong together: when one ends, all end, also when this process is killed.

Run as a file, with only the standard library, this module is the watchdog. It reads process groups from a pipe whose
other end only the watched process has, so the pipe ends when that process dies.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

PATIENCE_S = 15.0
_OF_A_RUN = re.compile(rb"[-0-9]+ [:0-9]+ \S+ - dagster - (DEBUG|INFO) - ")
"""What runs of Dagster print of what goes as it should."""
_LOOK_S = 0.2


class Processes:
    """Run processes that write to standard error until they are ended; tracebacks from ending them are suppressed.

    If this process is killed, the watchdog removes the temporary folder.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], temporary: Path) -> None:
        self._folder = folder
        self._environment = environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: list[int] = []
        self._ending = Event()
        # A session of its own: neither a Ctrl-C nor the end of a terminal is for it.
        self._watchdog = subprocess.Popen(
            [sys.executable, __file__, str(temporary)], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        read, self._output = os.pipe()
        Thread(target=self._pass_on, args=(read,), name="output", daemon=True).start()

    def start(self, name: str, command: Sequence[str], secrets: Mapping[str, str] | None = None) -> None:
        """Start a process in a session of its own, so that its children end with it; only it gets the secrets."""
        self._running[name] = process = subprocess.Popen(
            command,
            cwd=self._folder,
            env={**self._environment, **(secrets or {})},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        self._groups.append(process.pid)
        assert self._watchdog.stdin is not None
        with suppress(BrokenPipeError):  # without a watchdog, what it would have ended goes on
            self._watchdog.stdin.write(f"{process.pid}\n")
            self._watchdog.stdin.flush()

    def next_ended(self, look: Callable[[], None] = lambda: None) -> tuple[str, str]:
        """Wait until a process ends, checking something else meanwhile; return its name, and how it ended."""
        while True:
            look()
            for name, process in self._running.items():
                if (code := process.poll()) is not None:
                    del self._running[name]
                    return name, describe_end(code)
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """Ask all processes to stop, wait, and kill the rest."""
        self._ending.set()
        _end(self._groups, lambda: [process.poll() for process in self._running.values()])
        self._watchdog.kill()
        self._watchdog.communicate()

    def _pass_on(self, read: int) -> None:
        is_shown = True
        with os.fdopen(read, "rb") as lines:
            for line in lines:
                # What goes as it should is on the page of its run; further lines of an event are indented.
                is_shown = not _OF_A_RUN.match(line) and (is_shown or not line[:1].isspace())
                with suppress(OSError):  # a process that writes into a full pipe would stand still
                    if is_shown and not self._ending.is_set():
                        os.write(2, line)


def describe_end(code: int) -> str:
    """Return how a process ended, by its return code."""
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _end(groups: Sequence[int], look: Callable[[], object] = lambda: None) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        for group in groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        until = time.monotonic() + PATIENCE_S
        while any(map(_is_there, groups)) and time.monotonic() < until:
            look()  # a process that ended stays in its group until it is asked for
            time.sleep(_LOOK_S)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # or another user's by now
        return False
    return True


def _watch(folder: str) -> None:
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    groups: list[int] = []
    for line in sys.stdin:
        groups = [group for group in groups if _is_there(group)] + [int(line)]
    _end([group for group in groups if _is_there(group)])
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _watch(sys.argv[1])
