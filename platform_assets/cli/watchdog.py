"""Ends what a process started, if that process was killed and could not do so itself.

The watchdog is a process of its own, run as this file with nothing but the standard library. It reads the numbers of
process groups from a pipe whose other end only the watched process has, so the pipe's end tells of its death on every
system, however it died. A folder that goes with them is told as JSON: its name may have any character.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

PATIENCE_S = 15.0
LOOK_S = 0.2
_DISMISSED = "dismissed"


class Watchdog:
    """Watches over this process."""

    def __init__(self) -> None:
        # A session of its own: neither a Ctrl-C nor the end of a terminal is for it.
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def end_with_me(self, group: int) -> None:
        """Have a process group ended if this process dies."""
        self._tell(str(group))

    def remove_with_me(self, folder: str) -> None:
        """Have a folder removed if this process dies, once all that it started is ended."""
        self._tell(json.dumps(folder))

    def dismiss(self) -> None:
        """Everything was ended, nothing is left to do."""
        self._tell(_DISMISSED)
        with suppress(BrokenPipeError):
            self._process.communicate()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # somebody ended it, which is no reason to stop what it would have ended
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()


def is_there(group: int) -> bool:
    """Whether a process group has a process of ours."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # the number is somebody else's by now
    return True


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _watch(words: Iterable[str]) -> None:
    groups: list[int] = []
    folders: list[str] = []
    for line in words:
        word = line.strip()
        if word == _DISMISSED:
            return
        if word.startswith('"'):
            folders.append(json.loads(word))
            continue
        # What is gone by then is forgotten: its number may become somebody else's.
        groups = [group for group in groups if is_there(group)] + [int(word)]
    for number in (signal.SIGINT, signal.SIGKILL):
        for group in groups:
            signal_group(group, number)
        until = time.monotonic() + PATIENCE_S
        while any(map(is_there, groups)) and time.monotonic() < until:
            time.sleep(LOOK_S)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    _watch(sys.stdin)
