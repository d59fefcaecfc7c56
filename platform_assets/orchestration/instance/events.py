"""Read and write what Dagster's public calls do not reach: some of its events and states, and errors without a trace.

Dagster 1.13 has no public names for a check result about a day's materialization, for removing a run's planned checks,
for the planned days of a job's run, for marks on a run's page, and for failed days.

Dagster prints the stack trace of any error of a step or tick, which does not help with a held day. It omits the trace
only for errors that carry their own description, such as errors from its other processes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.errors import DagsterUserCodeProcessError
from dagster._core.events import AssetMaterializationPlannedData, EngineEventData
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from dagster_shared.error import SerializableErrorInfo
from dagster_shared.record import replace
from sqlalchemy import or_
from sqlalchemy.exc import InterfaceError, OperationalError

from platform_assets.errors import PlatformError, users_line

Target = AssetCheckEvaluationTargetMaterializationData
Event = dg.AssetMaterialization | dg.AssetCheckEvaluation
StepContext = dg.OpExecutionContext | dg.AssetExecutionContext


def report_anew(instance: dg.DagsterInstance, event: Event) -> None:
    """Report a day or a check's result without a run, replacing an older result without a run.

    Dagster numbers results by check, run and day, and refuses a second one without a run. The older one stays in the
    event log. It shows a result with its day only if that concerns the day's newest materialization.
    """
    if isinstance(event, dg.AssetCheckEvaluation):
        forget_results(instance, RUNLESS_RUN_ID, event.asset_check_key, [event.partition])
        of_day = dg.AssetRecordsFilter(event.asset_key, asset_partitions=[event.partition] if event.partition else None)
        for newest in instance.fetch_materializations(of_day, limit=1).records:
            event = replace(event, target_materialization_data=target_of(newest))
    instance.report_runless_asset_event(event)


def target_of(record: dg.EventLogRecord) -> Target:
    """Return a materialization as the target of a check result."""
    return Target(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)


def newest_materializations(
    instance: dg.DagsterInstance, key: dg.AssetKey, days: Collection[date]
) -> dict[str, Target]:
    """Return the targets of check results for some days, by partition."""
    ids = instance.event_log_storage.get_latest_storage_id_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, {day.isoformat() for day in days}
    )
    if not ids:
        return {}
    wanted = dg.AssetRecordsFilter(asset_key=key, storage_ids=list(ids.values()))
    records = instance.fetch_materializations(wanted, limit=len(ids)).records
    return {record.partition_key: target_of(record) for record in records if record.partition_key is not None}


def is_for_all(error: Exception) -> bool:
    """Return whether no event could be stored now: the database is locked, full, or unreachable."""
    return isinstance(error, OperationalError | InterfaceError | OSError)


def forget_results(
    instance: dg.DagsterInstance, run_id: str, check: dg.AssetCheckKey, days: Collection[str | None]
) -> None:
    """Remove a run's planned check of some days; the events stay in its log.

    Dagster has no result between passed and failed, and shows a day as failed if a failed run planned its check and did
    not do it.

    Args:
        days: partitions; None is the run's result for all its days together.
    """
    storage = instance.event_log_storage
    if not days or not isinstance(storage, SqlEventLogStorage):
        return
    kept = AssetCheckExecutionsTable.c
    in_days = kept.partition.in_([day for day in days if day is not None])
    with storage.index_connection() as connection:
        connection.execute(
            AssetCheckExecutionsTable.delete().where(
                kept.asset_key == check.asset_key.to_string(),
                kept.check_name == check.name,
                kept.run_id == run_id,
                or_(in_days, kept.partition.is_(None)) if None in days else in_days,
            )
        )


def plan_days(context: StepContext, days: Mapping[str, Collection[date]]) -> None:
    """Record the planned days of a run without assets: if it fails, they are failed until they are made.

    For Dagster a day has failed while the last run that planned it has failed and nothing was materialized since; it
    plans the days of a run of assets by itself.
    """
    step = context.get_step_execution_context().step.key
    for table, of_table in days.items():
        for day in sorted(of_table):
            data = AssetMaterializationPlannedData(dg.AssetKey([table]), partition=day.isoformat())
            event = dg.DagsterEvent.build_asset_materialization_planned_event(context.job_name, step, data)
            context.instance.report_dagster_event(event, context.run_id, logging.DEBUG)


def mark_step(context: StepContext, message: str, *, start: str | None = None, end: str | None = None) -> None:
    """Log a step's work; between the marks of one name its bar on the run's page has a mark."""
    step = context.get_step_execution_context().step.key
    data = EngineEventData(marker_start=start, marker_end=end)
    context.instance.report_engine_event(message, context.run, data, step_key=step)


def failed_days(
    instance: dg.DagsterInstance, key: dg.AssetKey, partitions: dg.PartitionsDefinition
) -> tuple[set[str], set[str]]:
    """Return the days that Dagster shows as failed, and those that it shows as in progress."""
    # What the pages of Dagster ask, too; it remembers what was, and looks only at what came since.
    now = get_and_update_asset_status_cache_value(instance, key, partitions)
    if now is None:
        return set(), set()
    failed = now.deserialize_failed_partition_subsets(partitions)
    at_work = now.deserialize_in_progress_partition_subsets(partitions)
    return set(failed.get_partition_keys()), set(at_work.get_partition_keys())


class ExpectedError(DagsterUserCodeProcessError):
    """An expected error of the platform, whose message says what happened and what to do."""

    def __init__(self, error: PlatformError) -> None:
        shown = SerializableErrorInfo(str(error), [], type(error).__name__)
        super().__init__(str(error), user_code_process_error_infos=[shown])  # type: ignore[no-untyped-call]


class RefusedError(DagsterUserCodeProcessError, dg.Failure):
    """A step did its work, and the gates refused some of it: trying again would give the same result."""

    def __init__(self, description: str, metadata: Mapping[str, dg.MetadataValue] | None = None) -> None:
        shown = SerializableErrorInfo(description, [], "Refused")
        super().__init__(  # type: ignore[no-untyped-call]
            description, metadata, False, user_code_process_error_infos=[shown]
        )


@contextmanager
def errors_without_trace(*, of_own_code: bool = False) -> Iterator[None]:
    """Raise an expected error of this block with its message only.

    Args:
        of_own_code: whether an error caused by a person's own code loses its trace, too. The trace helps them unless
            the error names file and line, as when contracts are loaded.

    Raises:
        ExpectedError: in place of a `PlatformError`.
    """
    try:
        yield
    except PlatformError as error:
        if not of_own_code and error.__cause__ is not None and users_line(error.__cause__):
            raise
        raise ExpectedError(error) from None
