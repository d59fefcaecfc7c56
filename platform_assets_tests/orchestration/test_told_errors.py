"""What Dagster shows of a refused day and of an expected error: what happened and what to do, no trace."""

from __future__ import annotations

import logging
from datetime import date

import dagster as dg
import pytest
from dagster import DagsterEventType as Event
from dagster._core.errors import DagsterCodeLocationLoadError

from platform_assets.errors import PlatformError
from platform_assets.ledger.ledger import Ledger
from platform_assets.orchestration.assets.outcomes import days_left, recorded_days_left
from platform_assets.orchestration.daemon import is_news
from platform_assets.orchestration.in_process import run_job
from platform_assets.orchestration.shown_text import ExpectedError, errors_without_trace

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


def test_a_server_that_does_not_answer_has_no_trace() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        data = failed(instance, finds_no_ledger).step_failure_data
    assert data.error is not None
    assert "does not answer or refuses" in data.error.message
    assert (data.error.stack, data.error.cause) == ([], None)


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
    with dg.DagsterInstance.ephemeral() as instance:
        data = failed(instance, meets_a_mistake).step_failure_data
    assert data.error is not None
    assert data.error.message == "There is no table sals.\n  What to do: Ask for sales."
    assert data.error.stack == []
    assert data.user_failure_data is None


def test_where_other_code_failed_its_trace_is_kept() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        error = failed(instance, calls_wrong_code).step_failure_data.error
    assert error is not None
    assert error.cause is not None
    assert error.cause.cause is not None
    assert 'int("no number")' in "".join(error.cause.cause.stack)


@pytest.mark.parametrize("count", [20, 21])
def test_of_many_refused_days_some_are_spelt_out(count: int) -> None:
    days = {date(2017, 1, 1 + n): "held" for n in range(count)}
    lines = str(days_left("Many.", {"silver.sales": days})).splitlines()
    assert len(lines) == 22 + (count > 20)
    assert (lines[-2] == "and 1 more") == (count > 20)


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
