"""Results of checks that Dagster would show and that say nothing: taken out of what its pages look at."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from sqlalchemy import or_


def forget_results(
    instance: dg.DagsterInstance, run_id: str, check: dg.AssetCheckKey, days: Collection[str | None]
) -> None:
    """Let a run have said nothing of some days by a check; the events stay in its log.

    Dagster 1.13 knows no result between passed and failed, and shows a day as failed that a failed run was to check and
    did not look at.

    Args:
        instance: that shows results.
        run_id: of the run.
        check: that had nothing to say.
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
