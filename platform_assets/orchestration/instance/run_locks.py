"""A lock that a run's process holds while it works, so that everybody can see whether it still lives.

The operating system holds it: it goes with the process, however that ends, and after a restart of the machine a file
that was left behind is simply not locked.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from platform_assets.settings import Settings

RunProcess = Literal["alive", "ending", "dead", "unknown"]

_TAKE_TIMEOUT_S = 10.0
"""For the moment in which somebody looks whether the lock is held, by taking it."""

_LAST_EVENTS_S = 60.0
"""A run writes its last events after it gave its lock back."""

_FORGOTTEN_AFTER_S = 7 * 86400.0
_RELEASED = "released"


def lock_folder(settings: Settings) -> Path:
    """Where the locks of an installation's runs lie."""
    return settings.state / "runs"


def take(folder: Path, run_id: str) -> FileLock:
    """Take the lock of a run for this process, until `give_back` or the end of the process.

    Args:
        folder: of all run locks of an installation, on a local disk.
        run_id: Dagster's id.

    Raises:
        Timeout: another process executes the same run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _forget_old(folder)
    file = _file(folder, run_id)
    # Without flock there would be a lock held by a file's existence, which outlives its holder.
    lock = FileLock(file, timeout=_TAKE_TIMEOUT_S, fallback_to_soft=False, thread_local=False)
    lock.acquire()
    file.write_text(f"{os.getpid()}\n", encoding="utf-8")
    return lock


def give_back(lock: FileLock) -> None:
    """Say that the run's work ended in order; its last events may still have to be written."""
    Path(lock.lock_file).write_text(_RELEASED, encoding="utf-8")
    lock.release()


def run_process(folder: Path, run_id: str) -> RunProcess:
    """Whether the process that executes a run lives.

    Returns:
        `alive` while the lock is held; `ending` for a minute after it was given back in order; `dead` if the lock is
        free otherwise; `unknown` if it was never taken here.
    """
    file = _file(folder, run_id)
    if not file.exists():
        return "unknown"
    if _is_held(file):
        return "alive"
    # Only now: it says that it ended in order before it lets go.
    if file.read_text(encoding="utf-8") == _RELEASED:
        return "ending" if time.time() - file.stat().st_mtime < _LAST_EVENTS_S else "dead"
    return "alive" if _is_held(file) else "dead"


def _file(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.lock"


def _is_held(file: Path) -> bool:
    try:
        with FileLock(file, timeout=0, fallback_to_soft=False, thread_local=False):
            return False
    except Timeout:
        return True


def _forget_old(folder: Path) -> None:
    """Remove the files of runs that ended long ago."""
    for file in folder.glob("*.lock"):
        try:
            if time.time() - file.stat().st_mtime > _FORGOTTEN_AFTER_S and not _is_held(file):
                file.unlink()
        except FileNotFoundError:
            continue  # somebody else was faster
