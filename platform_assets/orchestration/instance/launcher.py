"""Launch runs as Dagster does, with a lock in each run's process, so that its death is noticed.

Dagster's run monitoring asks a launcher about the worker of every started run, and marks the run as failed if it is
gone; the default launcher cannot answer, so a killed run would stay started for ever and keep its place in the queue.
The answer here is the run's lock. The daemon gives it, so it does not depend on a code location that loads, as a sensor
would. Dagster has no public names for the answer, nor for the tag of the run's machine.

The operating system holds the lock: it ends with the process, however that ends, and after a restart of the machine a
remaining file is simply not locked.
"""

from __future__ import annotations

import json
import os
import time
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

RunProcess = Literal["alive", "dead", "unknown"]
_TAKE_TIMEOUT_S = 10.0
"""For the moment in which run monitoring looks whether the lock is held, by taking it."""
_FORGOTTEN_AFTER_S = 7 * 86400.0
_held: dict[str, FileLock] = {}
"""Locks of this process by run. They go with it, as late as that: a run's last events are written after its steps."""


class WatchedRunLauncher(dg.DefaultRunLauncher):
    """Launch runs like the default launcher, and notice which of them died."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Tell Dagster's run monitoring to watch started runs."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return whether the process of a started run is alive, by its lock."""
        # Dagster creates the launcher by its name, in processes without definitions, so settings cannot be passed in.
        process = run_process(lock_folder(load_settings()), run.run_id)
        if process == "dead" or (process == "unknown" and self._should_have_locked(run)):
            return CheckRunHealthResult(WorkerStatus.FAILED, _DEAD)
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def _should_have_locked(self, run: dg.DagsterRun) -> bool:
        origin = run.remote_job_origin
        if origin is None or origin.repository_origin.code_location_origin.location_name != CODE_LOCATION:
            return False
        if json.loads(run.tags.get(GRPC_INFO_TAG, "{}")).get("host") not in _LOCAL:
            return False  # its lock is on that machine
        record = self._instance.get_run_record_by_id(run.run_id)
        return bool(record and record.start_time and time.time() - record.start_time > _LOCK_WITHIN_S)


def lock_folder(settings: Settings) -> Path:
    """Return the folder of the run locks of an installation."""
    return settings.state / "runs"


def take(folder: Path, run_id: str) -> None:
    """Take the lock of a run, until this process ends.

    Args:
        folder: of all run locks of an installation, on a local disk.

    Raises:
        Timeout: another process executes the same run.
    """
    if run_id in _held:
        return
    folder.mkdir(parents=True, exist_ok=True)
    _forget_old(folder)
    lock = _lock(_file(folder, run_id), _TAKE_TIMEOUT_S)
    lock.acquire()
    _held[run_id] = lock
    _file(folder, run_id).write_text(f"{os.getpid()}\n", encoding="utf-8")


def run_process(folder: Path, run_id: str) -> RunProcess:
    """Return whether the process of a run is alive: `unknown` if the run never took its lock here."""
    file = _file(folder, run_id)
    if not file.exists():
        return "unknown"
    # A run that holds its lock lives, whatever the file says: older versions of filelock empty the file.
    has_begun = bool(file.read_text(encoding="utf-8"))
    return "alive" if _is_held(file) else "dead" if has_begun else "unknown"


def _file(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.lock"


def _lock(file: Path, timeout_s: float) -> FileLock:
    # Without flock there would be a lock held by a file's existence, which outlives its holder.
    return FileLock(file, timeout=timeout_s, fallback_to_soft=False, thread_local=False)


def _is_held(file: Path) -> bool:
    try:
        with _lock(file, 0):
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
            continue  # another process was faster


TABLES_POOL = "tables"
"""Of every asset, of maintenance and of plans."""

REFRESH_POOL = "refresh"
"""Of the op of the job `refresh`: two at the same time would only do the same work."""

_PLACES = {TABLES_POOL: 1, REFRESH_POOL: 1}


def create_pools(instance: dg.DagsterInstance) -> None:
    """Create missing pools. Limits set by a person stay.

    Dagster would create a pool with the first run that needs it, and let that pass begin all the runs it finds.
    """
    storage = instance.event_log_storage
    there = {pool.name for pool in storage.get_pool_limits()}
    for name, places in _PLACES.items():
        if name not in there:
            storage.set_concurrency_slots(name, places)
