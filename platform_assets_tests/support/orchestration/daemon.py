"""Dagster's daemon for tests, one iteration at a time: its own code, on an instance of its own, in this process.

Runs are executed where they are launched, so they work with the one Spark session of the test run.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.execution.api import execute_run
from dagster._core.launcher import LaunchRunContext
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.scheduler.instigation import InstigatorTick, TickStatus
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon import sensor as sensor_daemon
from dagster._daemon.monitoring import execute_run_monitoring_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._scheduler.scheduler import launch_scheduled_runs
from dagster._utils.hosted_user_process import recon_job_from_origin

from platform_assets.orchestration.instance.launcher import CODE_LOCATION
from platform_assets.settings import project_root
from platform_assets_tests.support.world import World

LOGGER = logging.getLogger("daemon")
DEFINITIONS = """
from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import load_settings

defs = build_definitions(load_settings())
"""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

# Of the real today: Dagster forgets ticks of long ago.
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
ONE = MIDNIGHT + timedelta(hours=1, seconds=30)
NEXT = ONE + timedelta(days=1)


class InThisProcess(SyncInMemoryRunLauncher):
    """Executes a run at its launch, without writing its log to the terminal."""

    def launch_run(self, context: LaunchRunContext) -> None:
        assert context.job_code_origin is not None
        run = context.dagster_run
        quiet = run._replace(run_config={**run.run_config, **QUIET})
        execute_run(recon_job_from_origin(context.job_code_origin), quiet, self._instance)


class Daemon:
    """What `dagster-daemon` does, when told to."""

    def __init__(self, workspace: WorkspaceProcessContext) -> None:
        self.workspace = workspace
        self.instance = workspace.instance

    def stop_schedules(self, *but: str) -> None:
        """Switch schedules off, as a person may in the UI; the runs of others would be in a test's way."""
        for location in self.workspace.create_request_context().code_locations:
            for repository in location.get_repositories().values():
                for schedule in repository.get_schedules():
                    if schedule.name not in but:
                        self.instance.stop_schedule(schedule.get_remote_origin_id(), schedule.selector_id, schedule)

    def start_schedule(self, name: str) -> None:
        """Switch one on again."""
        for location in self.workspace.create_request_context().code_locations:
            for repository in location.get_repositories().values():
                self.instance.start_schedule(repository.get_schedule(name))

    def reload(self) -> None:
        """Reload the definitions, as a person does in the UI who has changed a setting; runs have the new ones, too."""
        # What Dagster keeps in a process, since it would load definitions anew in another one.
        sys.modules.pop("definitions", None)
        ReconstructableJob.get_repository_definition.cache_clear()
        ReconstructableJob.get_definition.cache_clear()
        self.workspace.refresh_code_location(CODE_LOCATION)

    def tick(self, sensor: str = "late_data", *, fails: bool = False) -> InstigatorTick:
        """Evaluate the sensors now; what one of them said."""
        list(sensor_daemon.execute_sensor_iteration(self.workspace, LOGGER, None, None))
        tick = self.ticks(sensor)[0]
        assert (tick.status == TickStatus.FAILURE) == fails, tick.error
        return tick

    def ticks(self, name: str) -> list[InstigatorTick]:
        """Of a sensor or schedule, newest first."""
        [state] = [state for state in self.instance.all_instigator_state() if state.instigator_name == name]
        return list(self.instance.get_ticks(state.instigator_origin_id, state.selector_id))

    def schedules(self, now: datetime) -> None:
        """Evaluate what is due."""
        errors = [error for error in launch_scheduled_runs(self.workspace, LOGGER, now, iteration_times={}) if error]
        assert not errors, errors

    def launch(self) -> list[dg.DagsterRun]:
        """Take from the queue what may run now, and run it; the runs that were taken."""
        before = {run.run_id for run in self.queued()}
        list(QueuedRunCoordinatorDaemon(interval_seconds=5).run_iteration(self.workspace))
        left = {run.run_id for run in self.queued()}
        return [run for run in self.instance.get_runs() if run.run_id in before - left]

    def queued(self) -> list[dg.DagsterRun]:
        """Runs that wait."""
        return list(self.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])))

    def monitor(self) -> None:
        """Look after the runs that started."""
        errors = [error for error in execute_run_monitoring_iteration(self.workspace, LOGGER) if error]
        assert not errors, errors

    def materialized(self, run: dg.DagsterRun) -> dict[str, set[int]]:
        """Days of the month that a run told Dagster of, by table."""
        found: dict[str, set[int]] = {}
        for entry in self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
            event = entry.asset_materialization
            assert event is not None
            found.setdefault(event.asset_key.to_user_string(), set()).add(int(str(event.partition)[-2:]))
        return found


def published(world: World, run: dg.DagsterRun) -> dict[str, set[int]]:
    """Days of the month that a run published, by table."""
    found: dict[str, set[int]] = {}
    with world.open() as platform:
        for name in platform.ledger.indexed():
            record = platform.ledger.publication(name)
            if record and record.run == run.run_id:
                for day in record.days:
                    found.setdefault(day.table, set()).add(day.day.day)
    return found


def enter_world(world: World, patch: pytest.MonkeyPatch, **more: Any) -> None:
    """Let everything that reads settings from the environment find this installation."""
    values = {name: getattr(world.settings, name) for name in ("state", "jars", "calendar_first", "today", "settle_s")}
    values |= {"calendar_last": world.settings.calendar_last or "", "domains": ",".join(world.settings.domains)}
    for name, value in (values | more).items():
        patch.setenv(f"PLATFORM_{name.upper()}", str(value))


def instance_config(folder: Path, **changes: Any) -> Path:
    """A home for an instance with the project's `dagster.yaml` and everything below the folder.

    Its storage is a copy of one that Dagster made once in this process: its migrations take most of a second.
    """
    shutil.copytree(_blank_storage(), folder / "dagster")
    return _home(folder, changes)


def _home(folder: Path, changes: Mapping[str, Any]) -> Path:
    text = (project_root() / "dagster.yaml").read_text().replace(".platform/", f"{folder}/")
    (folder / "home").mkdir(parents=True)
    (folder / "home" / "dagster.yaml").write_text(yaml.safe_dump(yaml.safe_load(text) | changes))
    return folder / "home"


@cache
def _blank_storage() -> Path:
    temporary = TemporaryDirectory(ignore_cleanup_errors=True)
    atexit.register(temporary.cleanup)
    folder = Path(temporary.name)
    with dg.DagsterInstance.from_config(str(_home(folder, {}))):
        return folder / "dagster"


@contextmanager
def running_daemon(folder: Path, patch: pytest.MonkeyPatch, **changes: Any) -> Iterator[Daemon]:
    """A daemon that never waits between two ticks of a sensor."""
    patch.setattr(sensor_daemon, "is_under_min_interval", lambda *_: False)
    folder.mkdir()
    launcher = {"run_launcher": {"module": __name__, "class": InThisProcess.__name__}}
    (folder / "definitions.py").write_text(DEFINITIONS)
    target = LoadableTargetOrigin(
        executable_path=sys.executable,
        python_file=str(folder / "definitions.py"),
        working_directory=str(folder),
        attribute="defs",
    )
    origin = InProcessCodeLocationOrigin(target, location_name=CODE_LOCATION)
    with (
        dg.DagsterInstance.from_config(str(instance_config(folder, **(launcher | changes)))) as instance,
        WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as workspace,
    ):
        daemon = Daemon(workspace)
        daemon.stop_schedules("daily", "deep_restatement")
        yield daemon


def run_one(daemon: Daemon) -> dg.DagsterRun:
    """The run that a tick requested for what there is to do; one that only shows held days may come with it."""
    assert daemon.tick().status == TickStatus.SUCCESS
    [run] = [run for run in daemon.launch() if run.job_name != "held_days"]
    return run


def idle(daemon: Daemon) -> bool:
    """Whether a tick finds nothing at all."""
    tick = daemon.tick()
    return (tick.status, tick.skip_reason) == (TickStatus.SKIPPED, "nothing to do")
