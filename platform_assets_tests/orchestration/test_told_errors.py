"""What Dagster shows of a refused day, an expected error and a code location that cannot be loaded: no trace."""

from __future__ import annotations

import logging
import time
import warnings
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster import DagsterEventType as Event
from dagster._core.errors import DagsterCodeLocationLoadError
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._daemon.asset_daemon import AssetDaemon
from dagster._daemon.auto_run_reexecution.event_log_consumer import EventLogConsumerDaemon
from dagster._daemon.daemon import BackfillDaemon, SchedulerDaemon, SensorDaemon
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

from platform_assets.errors import PlatformError
from platform_assets.ledger.ledger import Ledger
from platform_assets.orchestration.assets.checks import days_left, recorded_days_left
from platform_assets.orchestration.build import run_job
from platform_assets.orchestration.instance.events import ExpectedError, errors_without_trace
from platform_assets.orchestration.servers import DAEMONS, is_news
from platform_assets_tests.support.orchestration.daemon import DEFINITIONS, Daemon, instance_config
from platform_assets_tests.support.orchestration.up import up, wait
from platform_assets_tests.support.own_domain import CONTRACTS, PACKAGE, forget, write_domain

DAY = date(2017, 1, 5)
TODO = (
    "What to do: `platform-assets why silver.sales 2017-01-05` says all that is known of the day; then docs/on-call.md."
)


def failed(instance: dg.DagsterInstance, op: dg.OpDefinition) -> dg.DagsterEvent:
    @dg.job
    def job() -> None:
        op()

    run = job.execute_in_process(instance=instance, raise_on_error=False)
    [record] = instance.get_records_for_run(run.run_id, of_type={Event.STEP_FAILURE}).records
    assert record.event_log_entry.dagster_event
    return record.event_log_entry.dagster_event


@dg.op
def refuses() -> None:
    raise days_left("Days not published: 1.", {"silver.sales": {DAY: "held: too few rows"}, "gold.sales": {}})


@dg.op
def meets_a_mistake() -> None:
    with errors_without_trace():
        raise PlatformError("There is no table sals.", "Ask for sales.")


@dg.op
def calls_wrong_code() -> None:
    with errors_without_trace():
        try:
            int("no number")
        except ValueError as error:
            raise PlatformError("The transform of sales failed.", "Look at its code.") from error


@dg.op
def finds_no_ledger() -> None:
    with errors_without_trace(), Ledger.open("postgresql+psycopg://127.0.0.1:1/none"):
        pass


@dg.op
def meets_a_fault() -> None:
    raise RuntimeError("no such range") from ValueError("the 31st of April")


def test_a_run_in_this_process_says_what_went_wrong_and_not_only_in_which_step() -> None:
    @dg.job(name="faulty")
    def job() -> None:
        meets_a_fault()

    with dg.DagsterInstance.ephemeral() as instance:
        outcome = run_job(dg.Definitions(jobs=[job]), instance, "faulty", {})
    assert outcome.failures == ("RuntimeError: no such range",)


def test_a_refused_day_says_what_to_do_and_has_no_trace() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        data = failed(instance, refuses).step_failure_data
    assert data.error is not None
    assert data.error.stack == []
    assert data.error.cause is None
    assert data.error.context is None
    assert data.error.message.splitlines() == [
        "Days not published: 1.",
        "silver.sales 2017-01-05: held: too few rows",
        TODO,
    ]
    # By this, who announces failed runs knows that gates did it.
    assert data.user_failure_data is not None
    assert data.user_failure_data.description == data.error.message
    assert recorded_days_left(data.user_failure_data.metadata) == {("silver.sales", DAY)}


def test_an_expected_error_has_no_trace_and_is_not_taken_for_a_refusal() -> None:
    for op, says in (
        (meets_a_mistake, "There is no table sals.\n  What to do: Ask for sales."),
        (finds_no_ledger, "does not answer or refuses"),
    ):
        with dg.DagsterInstance.ephemeral() as instance:
            data = failed(instance, op).step_failure_data
        assert data.error is not None
        assert says in data.error.message
        assert (data.error.stack, data.error.cause, data.user_failure_data) == ([], None, None)


def test_where_other_code_failed_its_trace_is_kept() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        error = failed(instance, calls_wrong_code).step_failure_data.error
    assert error is not None
    assert error.cause is not None
    assert error.cause.cause is not None
    assert 'int("no number")' in "".join(error.cause.cause.stack)


def test_a_mistake_in_ones_own_code_is_told_where_definitions_are_loaded() -> None:
    def load() -> None:
        with errors_without_trace(of_own_code=True):
            raise PlatformError("The contracts cannot be imported: line 4.", "Mend it.") from ValueError("line 4")

    with pytest.raises(ExpectedError) as raised:
        load()
    [shown] = raised.value.user_code_process_error_infos
    assert shown.message.splitlines() == ["The contracts cannot be imported: line 4.", "  What to do: Mend it."]
    assert (shown.stack, shown.cause) == ([], None)


def test_the_daemon_logs_every_error_but_that_definitions_cannot_be_loaded(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("of a daemon")
    log.addFilter(is_news)
    for error in (DagsterCodeLocationLoadError("no definitions", load_error_infos=[]), ValueError("another")):
        try:
            raise error
        except (DagsterCodeLocationLoadError, ValueError):
            log.exception("a tick caught %s", error)
    log.error("no exception")
    assert caplog.messages == ["a tick caught another", "no exception"]
    asks = (AssetDaemon, BackfillDaemon, EventLogConsumerDaemon, QueuedRunCoordinatorDaemon)
    assert tuple(kind.__name__ for kind in (*asks, SchedulerDaemon, SensorDaemon)) == DAEMONS


BROKEN_DOMAIN = """
from platform_assets.contracts import Column, Contract, Domain, LandingFiles

SALES = Contract("raw.sales", "", "", (Column("day", "date", "When."),), (), source=LandingFiles("s"), event_time="day")
DOMAIN = Domain("broken", (SALES,), "broken_domain")
"""

ANOTHER = """
import dagster as dg

@dg.sensor(default_status=dg.DefaultSensorStatus.RUNNING)
def another():
    return dg.SkipReason("at work")

defs = dg.Definitions(sensors=[another])
"""

RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "platform_assets") {
  ... on WorkspaceLocationEntry { locationOrLoadError {
    ... on PythonError { message stack cause { message } } } } } }"""

MISTAKE = ('Per till.", "me", (K, ', 'Per till.", "me", (AT, ')
TOLD = "The contract of gold.tills has the key column 'till' that it does not declare."


@pytest.mark.proof
def test_a_mistake_made_while_up_runs_is_told_once_in_the_platforms_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_domain(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    try:
        with up(tmp_path, domains=PACKAGE) as server:
            assert "cause" not in str(server.graphql(RELOAD))
            (tmp_path / PACKAGE / "contracts.py").write_text(CONTRACTS.replace(*MISTAKE))
            shown = server.graphql(RELOAD)["reloadRepositoryLocation"]["locationOrLoadError"]
            assert TOLD in shown["message"]
            assert (shown["stack"], shown["cause"]) == ([], None)
            daemon_knows = "UserWarning: Error loading repository location"
            wait(lambda: (tmp_path / "up.log").read_text().count(daemon_knows) == 2, "both were told", 90)
            time.sleep(35)  # each sensor is asked once more
    finally:
        forget()
    said = (tmp_path / "up.log").read_text()
    assert said.count(TOLD) == 1
    assert "What to do: " in said
    assert "contracts.py, line" in said
    assert "Traceback" not in said
    assert "Stack Trace" not in said


@pytest.mark.proof
def test_a_contract_with_an_error_is_told_and_the_other_location_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster loads two code locations, each in a process of its own."""
    for name, text in (("broken_domain", BROKEN_DOMAIN), ("definitions", DEFINITIONS), ("another", ANOTHER)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PLATFORM_DOMAINS", "broken_domain")
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "state"))
    locations = [
        {"python_file": {"relative_path": f"{name}.py", "location_name": name, "working_directory": str(tmp_path)}}
        for name in ("definitions", "another")
    ]
    (tmp_path / "workspace.yaml").write_text(yaml.safe_dump({"load_from": locations}))
    target = WorkspaceFileTarget([str(tmp_path / "workspace.yaml")])
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),  # says the same once more
        dg.DagsterInstance.from_config(str(instance_config(tmp_path / "dagster"))) as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):
        shown = workspace.create_request_context().get_code_location_entries()["definitions"].load_error
        assert shown is not None
        assert shown.cause is not None
        assert shown.cause.message == (
            "platform_assets.contracts.errors.ContractError: The contract of raw.sales has no key. "
            f"It is declared in {tmp_path / 'broken_domain.py'}, line 4.\n"
            "  What to do: Name the columns that identify a row.\n"
        )
        daemon = Daemon(workspace)
        assert daemon.tick("another").skip_reason == "at work"
