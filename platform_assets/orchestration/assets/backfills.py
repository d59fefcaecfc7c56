"""Correct backfills that Dagster calls failed though their days are good: it looks at none again that ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from platform_assets.engine.platform import Platform
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.good_days import good_days

_LOOKED_BACK = timedelta(days=7)
_MOST = 20
"""Failed backfills that a tick looks at, the newest."""


def correct_backfills(instance: dg.DagsterInstance, platform: Platform) -> int:
    """Have failed backfills say of days that are up to date that they are done, and end well if none is left.

    A run that Dagster gave up before it began fails all its days, also those that are what they should be.

    Returns:
        How many backfills were corrected.
    """
    corrected = 0
    since = datetime.now(UTC) - _LOOKED_BACK
    recent = BulkActionsFilter(statuses=[BulkActionStatus.COMPLETED_FAILED], created_after=since)
    for backfill in instance.get_backfills(filters=recent, limit=_MOST):
        if (data := backfill.asset_backfill_data) is None:
            continue
        failed, done = data.failed_and_downstream_subset, AssetGraphSubset.create_empty_subset()
        for contract in platform.catalogue:
            key = asset_key(contract.name)
            if subset := failed.partitions_subsets_by_asset_key.get(key):
                keys = set(subset.get_partition_keys())
                days = [day for day in platform.calendar.days() if str(day) in keys]
                good = subset.empty_subset().with_partition_keys([*map(str, good_days(platform, contract, days))])
                subsets = {**done.partitions_subsets_by_asset_key, key: good}
                done = done._replace(partitions_subsets_by_asset_key=subsets)
        if not done.is_empty:
            materialized, left = data.materialized_subset | done, failed - done
            data = data._replace(materialized_subset=materialized, failed_and_downstream_subset=left)
            status = BulkActionStatus.COMPLETED_SUCCESS if left.is_empty else backfill.status
            instance.update_backfill(backfill._replace(asset_backfill_data=data, status=status))
            corrected += 1
    return corrected
