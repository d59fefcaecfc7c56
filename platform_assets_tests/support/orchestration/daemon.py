"""Dagster's daemon for tests, one iteration at a time: its own code, on an instance of its own, in this process.

Runs are executed where they are launched, so they work with the one Spark session of the test run. Backfills are
launched as the UI does it, and what its pages show of days is asked as they ask.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.execution.api import execute_run
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionStatus
from dagster._core.launcher import LaunchRunContext
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.scheduler.instigation import InstigatorTick, TickStatus
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon import sensor as sensor_daemon
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.monitoring import execute_run_monitoring_iteration
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._scheduler.scheduler import launch_scheduled_runs
from dagster._utils.hosted_user_process import recon_job_from_origin
from dagster_graphql.test.utils import execute_dagster_graphql

from platform_assets.engine.platform import Author
from platform_assets.orchestration.instance.launcher import CODE_LOCATION
from platform_assets.settings import project_root
from platform_assets_tests.support.orchestration.readings import DAYS, TABLES, land, refresh_on_paper
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


LAUNCH = """
mutation ($given: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $given) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PartitionKeysNotFoundError { message }
    ... on PythonError { message }
  }
}
"""


def ask(daemon: Daemon, query: str, **variables: Any) -> dict[str, Any]:
    """GraphQL, as the UI sends it."""
    return dict(execute_dagster_graphql(daemon.workspace.create_request_context(), query, variables).data)


def request(daemon: Daemon, days: Collection[str], tables: Collection[str]) -> dict[str, Any]:
    """The answer to the UI's "Launch backfill"."""
    given = {"assetSelection": [{"path": [table]} for table in tables], "partitionNames": list(days)}
    return dict(ask(daemon, LAUNCH, given=given)["launchPartitionBackfill"])


def launch(daemon: Daemon, days: Collection[str], tables: Collection[str] = TABLES) -> str:
    """Launch a backfill and let the daemon make its runs; its id."""
    answer = request(daemon, days, tables)
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    look_after_backfills(daemon)
    return str(answer["backfillId"])


def look_after_backfills(daemon: Daemon) -> None:
    """One iteration of the backfill daemon."""
    errors = [error for error in execute_backfill_iteration(daemon.workspace, LOGGER) if error]
    assert not errors, errors


def complete(daemon: Daemon, backfill: str) -> list[dg.DagsterRun]:
    """Let the daemon work until a backfill ended; its runs, oldest first."""
    for _ in range(10):
        daemon.launch()
        look_after_backfills(daemon)
        if status(daemon, backfill) in BULK_ACTION_TERMINAL_STATUSES:
            return list(daemon.instance.get_runs(dg.RunsFilter.for_backfill(backfill)))[::-1]
    raise AssertionError(f"{backfill} is {status(daemon, backfill)}")


def status(daemon: Daemon, backfill: str) -> BulkActionStatus:
    found = daemon.instance.get_backfill(backfill)
    assert found is not None
    return found.status


def reasons(daemon: Daemon, run: dg.DagsterRun) -> str:
    """What the steps said that failed."""
    told = []
    for entry in daemon.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        assert entry.dagster_event is not None
        data = entry.dagster_event.step_failure_data
        told.append(str(data.user_failure_data.description if data.user_failure_data else data.error))
    return "\n".join(told)


_OF_ASSET = """
query ($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      partitionStats { numMaterialized numFailed }
      assetPartitionStatuses { ... on TimePartitionStatuses { ranges { status startKey endKey } } }
    }
  }
}
"""
_OF_CHECKS = """
query ($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      assetChecksOrError {
        ... on AssetChecks {
          checks {
            name
            partitionStatuses { ... on AssetCheckTimePartitionStatuses { ranges { status startKey endKey } } }
            executionForLatestMaterialization { status evaluation { severity description } }
          }
        }
      }
    }
  }
}
"""
Ranges = list[dict[str, str]]


def days_of_asset(daemon: Daemon, table: str) -> dict[str, list[str]]:
    """The days of a table by what the tab *Partitions* of its asset calls them."""
    node = ask(daemon, _OF_ASSET, key={"path": [table]})["assetNodeOrError"]
    shown = _by_status(node["assetPartitionStatuses"]["ranges"])
    assert len(shown.get("FAILED", ())) == node["partitionStats"]["numFailed"]
    return shown


def days_of_check(daemon: Daemon, table: str, check: str) -> dict[str, list[str]]:
    """The days of a table by what the tab *Partitions* of a check calls them."""
    return _by_status(_check(daemon, table, check)["partitionStatuses"]["ranges"])


def newest_of_check(daemon: Daemon, table: str, check: str) -> dict[str, Any]:
    """What the overview of an asset shows of a check."""
    return dict(_check(daemon, table, check)["executionForLatestMaterialization"])


def _check(daemon: Daemon, table: str, check: str) -> dict[str, Any]:
    node = ask(daemon, _OF_CHECKS, key={"path": [table]})["assetNodeOrError"]
    [found] = [found for found in node["assetChecksOrError"]["checks"] if found["name"] == check]
    return dict(found)


def _by_status(ranges: Ranges) -> dict[str, list[str]]:
    shown: defaultdict[str, list[str]] = defaultdict(list)
    for of_range in ranges:
        day, last = date.fromisoformat(of_range["startKey"]), date.fromisoformat(of_range["endKey"])
        while day <= last:
            shown[of_range["status"]].append(str(day))
            day += timedelta(days=1)
    return dict(shown)


LOADED = DAYS[:3]
GREEN = {"MATERIALIZED": LOADED}
NOTHING_NEW = "nothing was published without Dagster"


def refresh(world: World, run: str) -> None:
    """What a person does at a terminal."""
    with world.open() as platform:
        refresh_on_paper(platform, None, Author(run, "refresh"))


def load(world: World, daemon: Daemon) -> None:
    """Three days that are published, and that Dagster knows of."""
    for day in LOADED:
        land(world, day, day)
    refresh(world, "refresh-1")
    daemon.tick("published_elsewhere")
    assert [days_of_asset(daemon, table) for table in TABLES] == [GREEN] * 3


def lift(world: World) -> None:
    """End all holds."""
    with world.open() as platform:
        platform.ledger.drop(platform.ledger.holds())
