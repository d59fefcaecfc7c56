"""Processes that work for an installation."""

from __future__ import annotations

import os
from pathlib import Path


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
