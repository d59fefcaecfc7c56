"""Dagster's default run launcher, which also sees when a run's process has died.

Dagster's run monitoring asks a launcher after the worker of every started run, and marks the run as failed if it is
gone; the default launcher has no answer, so a run that was killed would stay started for ever and keep its place in
the queue. The answer here is the run's lock. It is given by the daemon, so it does not depend on a code location that
loads, as a sensor would.
"""

from __future__ import annotations

import json
import time
from functools import cached_property
from pathlib import Path

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from platform_assets.orchestration.instance.run_locks import lock_folder, run_process
from platform_assets.settings import load_settings

CODE_LOCATION = "platform_assets"
"""As in workspace.yaml. Runs of other code locations take no lock."""

_LOCK_WITHIN_S = 300.0
"""A started run takes its lock with its first resource, at once; a run without one after this long was killed first."""

_DEAD = (
    "its process ended without a word. It was killed, ran out of memory, or the machine was restarted. What it had "
    "published stays, nothing else was changed, and the next refresh goes on from there"
)
_LOCAL = {None, "localhost", "127.0.0.1", "::1"}


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
