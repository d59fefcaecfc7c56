"""Events without a run, told again and again: Dagster keeps one result of a check and day that has no run."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster_shared.record import replace
from sqlalchemy import or_
from sqlalchemy.exc import InterfaceError, OperationalError

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def report_anew(instance: dg.DagsterInstance, event: Event) -> None:
    """Tell Dagster of a day or of a check's result; an older result without a run makes room for it.

    Dagster 1.13 numbers results by check, run and day, and refuses a second one whose run is none. The older one stays
    in the event log. It shows a result with its day only if that is about the day's newest materialization.
    """
    if isinstance(event, dg.AssetCheckEvaluation):
        forget_results(instance, RUNLESS_RUN_ID, event.asset_check_key, [event.partition])
        of_day = dg.AssetRecordsFilter(event.asset_key, asset_partitions=[event.partition] if event.partition else None)
        for newest in instance.fetch_materializations(of_day, limit=1).records:
            event = replace(event, target_materialization_data=target_of(newest))
    instance.report_runless_asset_event(event)


def target_of(record: dg.EventLogRecord) -> AssetCheckEvaluationTargetMaterializationData:
    """A materialization as what a check result is about."""
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
    )


def is_for_all(error: Exception) -> bool:
    """Whether no event could be stored now: the database is locked, full, or not to be reached."""
    return isinstance(error, OperationalError | InterfaceError | OSError)


def forget_results(
    instance: dg.DagsterInstance, run_id: str, check: dg.AssetCheckKey, days: Collection[str | None]
) -> None:
    """Let a run have said nothing of some days by a check; the events stay in its log.

    Dagster 1.13 knows no result between passed and failed, and shows a day as failed that a failed run was to check and
    did not look at.

    Args:
        days: partitions; None is what the run said of all its days together.
    """
    storage = instance.event_log_storage
    if not days or not isinstance(storage, SqlEventLogStorage):
        return
    kept = AssetCheckExecutionsTable.c
    named = kept.partition.in_([day for day in days if day is not None])
    with storage.index_connection() as connection:
        connection.execute(
            AssetCheckExecutionsTable.delete().where(
                kept.asset_key == check.asset_key.to_string(),
                kept.check_name == check.name,
                kept.run_id == run_id,
                or_(named, kept.partition.is_(None)) if None in days else named,
            )
        )
