"""Processes of this machine: which work for an installation, which another started, and who listens at a port."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

_ANSWERS_WITHIN_S = 60


def started_from(home: Path) -> list[str]:
    """Commands of the processes that work for an installation."""
    return list(processes_of(home).values())


def processes_of(home: Path) -> dict[int, str]:
    """Ids of the processes that work for an installation, and their commands."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if f"PLATFORM_STATE={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    return found


def children_of(pid: int) -> list[int]:
    """The processes that it started and that these started, the youngest first."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            children += map(int, (task / "children").read_text().split())
    return [grandchild for child in children for grandchild in children_of(child)] + children


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait(port: int) -> None:
    """Until somebody listens at a port."""
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")
