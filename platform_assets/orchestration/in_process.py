"""Run assets and jobs of Dagster in this process, as the demo does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import dagster as dg

_NO_RETRY = {"dagster/max_retries": "0"}
"""The daemon can start no run anew that a command executed: were it announced, somebody would wait for it."""

_AROUND = dg.DagsterExecutionStepExecutionError.__name__
"""Dagster's error around what a step met, which only names the step."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: Dagster's id, and what failed steps said; nothing if the run succeeded."""

    run_id: str
    failures: tuple[str, ...]


def materialize_range(defs: dg.Definitions, instance: dg.DagsterInstance, first: date, last: date) -> RunOutcome:
    """Materialize every table for a range of days, in one run and one Spark session.

    Raises:
        KeyboardInterrupt: a step was interrupted.
    """
    tags = {
        "dagster/asset_partition_range_start": first.isoformat(),
        "dagster/asset_partition_range_end": last.isoformat(),
        **_NO_RETRY,
    }
    job = defs.resolve_implicit_global_asset_job_def()
    tables = list(job.asset_layer.executable_asset_keys)  # named, or the page of runs shows no target
    result = job.execute_in_process(
        instance=instance, tags=tags, run_config=_QUIET, raise_on_error=False, asset_selection=tables
    )
    return _outcome(result)


def run_job(defs: dg.Definitions, instance: dg.DagsterInstance, name: str, tags: dict[str, str]) -> RunOutcome:
    """Run a job by name.

    Raises:
        KeyboardInterrupt: a step was interrupted.
    """
    job = defs.resolve_job_def(name)
    result = job.execute_in_process(instance=instance, tags=tags | _NO_RETRY, run_config=_QUIET, raise_on_error=False)
    return _outcome(result)


def _outcome(result: dg.ExecuteInProcessResult) -> RunOutcome:
    failures: list[str] = []
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.error_source.name == "INTERRUPT":
                # Dagster records it as a failure like any other, and goes on.
                raise KeyboardInterrupt
            error = data.error
            if error and error.cause and error.cls_name == _AROUND:
                error = error.cause
            described = data.user_failure_data.description if data.user_failure_data else None
            failures.append(described or (error.message.strip() if error else "failed"))
    if not result.success and not failures:
        failures.append("The run failed before its first step.")
    return RunOutcome(result.run_id, tuple(failures))
