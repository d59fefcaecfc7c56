"""Events without a run, told again and again: Dagster keeps one result of a check and day that has no run."""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster_shared.record import replace
from sqlalchemy.exc import InterfaceError, OperationalError

from platform_assets.orchestration.instance.check_results import forget_results

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
