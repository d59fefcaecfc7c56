"""A run of `plan_apply` that is terminated or killed under `up`, as people and machines do: its plan goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from pyspark.sql import SparkSession

from platform_assets.operations.backfill.files import new_plan
from platform_assets.operations.plan_record import BackfillRecord, find_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.readings import GOLD, SENSORS, SILVER, land
from platform_assets_tests.support.orchestration.up import Server, up, wait
from platform_assets_tests.support.processes import processes_of, started_from
from platform_assets_tests.support.world import World

FIRST = date(2017, 1, 1)
DAYS = [str(FIRST + timedelta(number)) for number in range(5)]
PATIENCE_S = 240
RUNS = """query($f: RunsFilter!) {
  runsOrError(filter: $f) { ... on Runs { results { runId status parentRunId tags { key value } } } }
}"""
LAUNCH = """mutation($p: ExecutionParams!) {
  launchRun(executionParams: $p) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}"""
TERMINATE = """mutation($id: String!) {
  terminateRun(runId: $id) {
    __typename ... on TerminateRunFailure { message run { status } } ... on PythonError { message }
  }
}"""

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


def until(happened: Callable[[], Any], what: str) -> None:
    """A server that starts does not answer at once."""

    def quietly() -> bool:
        try:
            return bool(happened())
        except (requests.RequestException, KeyError, TypeError):
            return False

    wait(quietly, what, PATIENCE_S)


def launch(server: Server, name: str) -> str:
    """As the launchpad does; the id of the run."""
    job = {"repositoryLocationName": "platform_assets", "repositoryName": "__repository__", "jobName": "plan_apply"}
    answer = server.graphql(LAUNCH, p={"selector": job, "runConfigData": {"plan": name, "by": "zoe"}})["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return str(answer["run"]["runId"])


def runs(server: Server, job: str) -> list[dict[str, Any]]:
    """Newest first."""
    return cast("list[dict[str, Any]]", server.graphql(RUNS, f={"pipelineName": job})["runsOrError"]["results"])


def status(server: Server, run_id: str) -> str:
    [run] = [run for run in runs(server, "plan_apply") if run["runId"] == run_id]
    return str(run["status"])


def record_of(world: World, name: str) -> BackfillRecord | None:
    with world.open() as platform:
        return find_record(platform.lake, name)


def spark_of(world: World) -> bool:
    """Whether some process of an installation has a Spark."""
    return any("SparkSubmit" in command for command in started_from(world.settings.state))


def computes(world: World, name: str) -> bool:
    """Whether a plan was begun, and Spark runs for it."""
    record = record_of(world, name)
    return record is not None and record.state == "staging" and spark_of(world)


def test_a_plan_goes_on_after_its_run_was_terminated_and_up_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four Sparks: the first refresh, a run that is terminated, its next, and one whose `up` is killed."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    last = FIRST + timedelta(len(DAYS) - 1)
    chosen: dict[str, Any] = {"calendar_first": FIRST, "calendar_last": last, "today": last}
    chosen |= {"plans": tmp_path / "plans", "domains": SENSORS}
    settings = load_settings(state=tmp_path / "state", jars=JARS, **(chosen | {"domains": (SENSORS,)}))
    world = World(settings, cast("SparkSession", None))
    for day in DAYS:
        land(world, day, day)
    for name in ("discount", "again"):
        said = {"name": name, "reason": "taken twice", "owner": "ada", "tables": [SILVER, GOLD], "rollout": [50, 100]}
        days = {"days": {"range": f"{DAYS[0]}..{DAYS[-1]}"}, "afterwards": {"verify": 1}}
        new_plan(PlanFile.model_validate(said | days), tmp_path / "plans" / f"{name}.yaml")

    with up(tmp_path, **chosen) as server:
        until(lambda: [run["status"] for run in runs(server, "refresh")] == ["SUCCESS"], "the first refresh")
        before = world.digests()
        assert len(before[GOLD]) == len(DAYS)
        until(lambda: not spark_of(world), "the Spark of the first refresh to end")

        first = launch(server, "discount")
        until(lambda: computes(world, "discount"), "the plan to compute")
        answer = server.graphql(TERMINATE, id=first)["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer
        until(lambda: status(server, first) == "CANCELED", "the run to end")
        until(lambda: not spark_of(world), "its Spark to end")
        stopped = record_of(world, "discount")
        assert stopped is not None
        assert stopped.state == "staging"
        assert "interrupted while it computed" in {event.what for event in stopped.events}
        assert stopped.seconds > 0, "what it took counts in the budget"
        assert world.digests() == before, "readers see nothing of it"

        second = launch(server, "discount")
        until(lambda: computes(world, "discount"), "the plan to compute again")
        until(lambda: status(server, second) == "SUCCESS", "the next run to go on and end")
        done = record_of(world, "discount")
        assert done is not None
        assert (done.state, done.proved, done.runs) == ("published", True, (first, second))
        [ended] = [run for run in runs(server, "plan_apply") if run["runId"] == second]
        assert {"key": "platform/plan", "value": "discount"} in ended["tags"]
        assert world.digests() == before

        launch(server, "again")
        until(lambda: computes(world, "again"), "the other plan to compute")
        [pid] = [pid for pid, command in processes_of(settings.state).items() if " up --port" in command]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not started_from(settings.state), "everything to end")
    killed = record_of(world, "again")
    assert killed is not None
    assert killed.state == "staging"
    assert world.digests() == before

    with up(tmp_path, **chosen) as server:

        def gone_on() -> bool:
            record = record_of(world, "again")
            return record is not None and record.proved

        tried = {run["runId"] for run in runs(server, "plan_apply")}
        until(lambda: gone_on() or {run["runId"] for run in runs(server, "plan_apply")} > tried, "another try")
        until(gone_on, "the plan to be published and proved")
        done = record_of(world, "again")
        assert done is not None
        assert (done.state, len(done.runs)) == ("published", 2), "the daemon tried it once more"
        assert world.digests() == before
