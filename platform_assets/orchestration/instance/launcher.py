"""Launch runs as Dagster does, with a lock that each run's process holds, so that its death is seen.

Dagster's run monitoring asks a launcher after the worker of every started run, and marks the run as failed if it is
gone; the default launcher has no answer, so a run that was killed would stay started for ever and keep its place in
the queue. The answer here is the run's lock. It is given by the daemon, so it does not depend on a code location that
loads, as a sensor would.

The operating system holds the lock: it goes with the process, however that ends, and after a restart of the machine a
file that was left behind is simply not locked.
"""

from __future__ import annotations

import json
import os
import time
from functools import cached_property
from pathlib import Path
from typing import Literal

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from filelock import FileLock, Timeout

from platform_assets.settings import Settings, load_settings

CODE_LOCATION = "platform_assets"
"""As in workspace.yaml. Runs of other code locations take no lock."""

_LOCK_WITHIN_S = 300.0
"""A started run takes its lock with its first resource, at once; a run without one after this long was killed first."""

_DEAD = (
    "its process ended without a word. It was killed, ran out of memory, or the machine was restarted. What it had "
    "published stays, nothing else was changed, and the next refresh goes on from there"
)
_LOCAL = {None, "localhost", "127.0.0.1", "::1"}

RunProcess = Literal["alive", "ending", "dead", "unknown"]
_TAKE_TIMEOUT_S = 10.0
"""For the moment in which somebody looks whether the lock is held, by taking it."""
_LAST_EVENTS_S = 60.0
"""A run writes its last events after it gave its lock back."""
_FORGOTTEN_AFTER_S = 7 * 86400.0
_RELEASED = "released"


class WatchedRunLauncher(dg.DefaultRunLauncher):
    """Launches runs as the default launcher does, and knows which of them died."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Asks Dagster's run monitoring to look after started runs."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of a started run lives, by its lock."""
        process = run_process(self._locks, run.run_id)
        if process == "dead" or (process == "unknown" and self._should_have_locked(run)):
            return CheckRunHealthResult(WorkerStatus.FAILED, _DEAD)
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    @cached_property
    def _locks(self) -> Path:
        # Dagster makes the launcher by its name, in processes without definitions: nobody could hand it the settings.
        return lock_folder(load_settings())

    def _should_have_locked(self, run: dg.DagsterRun) -> bool:
        origin = run.remote_job_origin
        if origin is None or origin.repository_origin.code_location_origin.location_name != CODE_LOCATION:
            return False
        if json.loads(run.tags.get(GRPC_INFO_TAG, "{}")).get("host") not in _LOCAL:
            return False  # its lock is on that machine
        record = self._instance.get_run_record_by_id(run.run_id)
        return bool(record and record.start_time and time.time() - record.start_time > _LOCK_WITHIN_S)


def lock_folder(settings: Settings) -> Path:
    """Where the locks of an installation's runs lie."""
    return settings.state / "runs"


def take(folder: Path, run_id: str) -> FileLock:
    """Take the lock of a run for this process, until `give_back` or the end of the process.

    Args:
        folder: of all run locks of an installation, on a local disk.

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
