"""Runs that failed, and whether by their own verdict: then they say which days they left."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DagsterEventType as Event

from platform_assets.orchestration.assets.outcomes import TableDay, recorded_days_left

_LOOK_BACK = timedelta(days=7)
"""Runs that failed earlier are not announced any more, such as those of the time before a webhook was set."""

_MOST_RUNS = 200
_ERROR_NAME = re.compile(r"^[\w.]+: ")


@dataclass(frozen=True)
class FailedRun:
    """A run that failed.

    Args:
        run_id: Dagster's id.
        job: its name.
        reason: what the failed steps said, or of a run without any, why it could not begin, or Dagster.
        by_gates: whether every failed step said by itself which days it did not publish.
        left: those days, each with its table.
        is_tried_again: whether Dagster starts it once more.
    """

    run_id: str
    job: str
    reason: str
    by_gates: bool
    is_tried_again: bool
    left: frozenset[TableDay] = frozenset()


def failed_runs(instance: dg.DagsterInstance, told: Collection[str]) -> list[FailedRun]:
    """Runs that failed within the last week and are not among those announced, oldest first."""
    since = datetime.now(UTC) - _LOOK_BACK
    failure = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    runs = [record.dagster_run for record in instance.get_run_records(failure, limit=_MOST_RUNS)]
    return [_failed(instance, run) for run in reversed(runs) if run.run_id not in told]


def _why_not_begun(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """What kept the process of a run from loading the definitions, as a mistake in a contract does."""
    records = instance.get_records_for_run(run.run_id, of_type={Event.ENGINE_EVENT}).records
    events = [record.event_log_entry.dagster_event for record in records]
    errors = [event.engine_event_data.error for event in events if event]
    return [_ERROR_NAME.sub("", (error.cause or error).message) for error in errors if error]


def _failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> FailedRun:
    reasons: list[str] = []
    verdicts: list[bool] = []
    left: set[TableDay] = set()
    for record in instance.get_records_for_run(run.run_id, of_type={Event.STEP_FAILURE}).records:
        event = record.event_log_entry.dagster_event
        data = event.step_failure_data if event else None
        said = data.user_failure_data if data else None
        verdicts.append(bool(said and said.description))
        if said and said.description:
            reasons.append(said.description)
            left |= recorded_days_left(said.metadata)
        elif data and data.error:
            reasons.append((data.error.cause or data.error).message)
    reasons = reasons or _why_not_begun(instance, run)
    if not reasons:
        ends = instance.get_records_for_run(run.run_id, of_type={Event.RUN_FAILURE}).records
        events = [record.event_log_entry.dagster_event for record in ends]
        reasons = [event.message for event in events if event and event.message]
    return FailedRun(
        run_id=run.run_id,
        job=run.job_name,
        reason="\n".join(reason.strip() for reason in reasons) or "no reason was recorded",
        by_gates=bool(verdicts) and all(verdicts),
        is_tried_again=run.tags.get("dagster/will_retry") == "true",
        left=frozenset(left),
    )
