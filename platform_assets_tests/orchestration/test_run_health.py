"""A run whose process was killed does not stay started; one that works or just ended is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.test_utils import create_run_for_test
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from platform_assets.orchestration.automation.refresh_requests import WHY_TAG
from platform_assets.orchestration.build import build_definitions, run_job
from platform_assets.orchestration.instance.launcher import (
    CODE_LOCATION,
    WatchedRunLauncher,
    run_process,
    take,
)
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.orchestration.daemon import Daemon, running_daemon
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.world import World

WORKING = """
import sys, time
import dagster as dg
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.settings import load_settings

@dg.op
def work(context: dg.OpExecutionContext, platform: PlatformResource):
    print(context.run_id, flush=True)
    time.sleep(600)

@dg.job
def long_work():
    work()

with dg.DagsterInstance.from_config(sys.argv[1]) as instance:
    resources = {"platform": PlatformResource(settings=load_settings())}
    long_work.execute_in_process(instance=instance, resources=resources)
"""


@pytest.fixture
def watched(readings: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A daemon with the launcher that the project's `dagster.yaml` names."""
    launcher = yaml.safe_load((project_root() / "dagster.yaml").read_text())["run_launcher"]
    with running_daemon(tmp_path / "watched", monkeypatch, run_launcher=launcher) as daemon:
        assert isinstance(daemon.instance.run_launcher, WatchedRunLauncher)
        yield daemon


def status(daemon: Daemon, run_id: str) -> dg.DagsterRunStatus:
    run = daemon.instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_a_killed_run_becomes_failed_and_is_tried_again(watched: Daemon, tmp_path: Path) -> None:
    home = str(tmp_path / "watched" / "home")
    process = subprocess.Popen(
        [sys.executable, "-c", WORKING, home], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        run_id = process.stdout.readline().strip()
        watched.monitor()
        assert status(watched, run_id) == dg.DagsterRunStatus.STARTED
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    watched.monitor()
    run = watched.instance.get_run_by_id(run_id)
    assert run is not None
    assert run.status == dg.DagsterRunStatus.FAILURE
    assert run.tags["dagster/will_retry"] == "true"
    [end] = watched.instance.all_logs(run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert end.dagster_event is not None
    assert "its process ended without a word. It was killed" in str(end.dagster_event.message)


def test_a_run_that_a_command_executed_is_promised_no_retry_that_nobody_could_start(watched: Daemon) -> None:
    defs = build_definitions(load_settings())
    outcome = run_job(defs, watched.instance, "refresh", {WHY_TAG: "a test"})
    run = watched.instance.get_run_by_id(outcome.run_id)
    assert run is not None
    watched.instance.report_run_failed(run)
    failed = watched.instance.get_run_by_id(outcome.run_id)
    assert failed is not None
    assert failed.tags["dagster/will_retry"] == "false"


def started(daemon: Daemon, *, location: str, ago_s: float) -> str:
    """A run that started some time ago and never took a lock."""
    job = daemon.workspace.create_request_context().get_code_location(CODE_LOCATION)
    origin = next(iter(job.get_repositories().values())).get_full_job("refresh").get_remote_origin()
    if location != CODE_LOCATION:
        repository = origin.repository_origin
        elsewhere = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(), location_name=location)
        origin = origin._replace(repository_origin=repository._replace(code_location_origin=elsewhere))
    run = create_run_for_test(daemon.instance, "refresh", status=dg.DagsterRunStatus.STARTING, remote_job_origin=origin)
    event = dg.DagsterEvent("PIPELINE_START", "refresh")
    daemon.instance.handle_new_event(
        dg.EventLogEntry(
            error_info=None, level="debug", user_message="", run_id=run.run_id, timestamp=time.time() - ago_s,
            job_name="refresh", dagster_event=event,
        )
    )  # fmt: skip
    assert status(daemon, run.run_id) == dg.DagsterRunStatus.STARTED
    return str(run.run_id)


@pytest.mark.parametrize(
    ("location", "ago_s", "ends"),
    [
        (CODE_LOCATION, 1000, "FAILURE"),
        (CODE_LOCATION, 1, "STARTED"),
        ("another", 1000, "STARTED"),
        ("another", 43_300, "FAILURE"),
    ],
)
def test_a_run_killed_before_it_took_its_lock_fails_in_time_and_any_after_twelve_hours(
    watched: Daemon, location: str, ago_s: float, ends: str
) -> None:
    run_id = started(watched, location=location, ago_s=ago_s)
    watched.monitor()
    assert status(watched, run_id).value == ends


HOLDING = """
import sys
from pathlib import Path
from platform_assets.orchestration.instance.launcher import take

take(Path(sys.argv[1]), "r")
print("taken", flush=True)
sys.stdin.read()
"""


def test_a_lock_says_whether_its_process_works_or_ended(tmp_path: Path) -> None:
    assert run_process(tmp_path, "r") == "unknown"
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        assert run_process(tmp_path, "r") == "alive"
        (tmp_path / "r.lock").write_text("")  # as versions of filelock do that empty what they look at
        assert run_process(tmp_path, "r") == "alive"
        (tmp_path / "r.lock").write_text("4711\n")
        process.kill()
        process.wait()
    assert run_process(tmp_path, "r") == "dead"


def test_a_lock_left_by_another_boot_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "r.lock").write_text("4711\n")
    assert run_process(tmp_path, "r") == "dead"


def test_locks_of_long_ago_are_removed_unless_they_are_held(tmp_path: Path) -> None:
    (tmp_path / "old.lock").write_text("4711\n")
    take(tmp_path, "held")
    for name in ("old", "held"):
        os.utime(tmp_path / f"{name}.lock", (1, 1))
    take(tmp_path, "new")
    assert {file.stem for file in tmp_path.iterdir()} == {"held", "new"}


def test_every_run_of_ours_takes_a_lock() -> None:
    repository = build_definitions(load_settings(domains=SENSORS)).get_repository_def()
    for job in repository.get_all_jobs():
        for node in job.nodes:
            assert isinstance(node.definition, dg.OpDefinition)
            assert "platform" in node.definition.required_resource_keys


def test_the_locations_name_is_that_of_the_workspace() -> None:
    [declared] = yaml.safe_load((project_root() / "workspace.yaml").read_text())["load_from"]
    assert declared["python_module"]["location_name"] == CODE_LOCATION
