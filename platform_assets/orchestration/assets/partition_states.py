"""Where Dagster shows a day otherwise than it is: held and green, or red and healed without a publication."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.orchestration.assets.checks import published_events
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.external_publications import Cursor, Elsewhere
from platform_assets.orchestration.assets.factory import daily_partitions
from platform_assets.orchestration.assets.outcomes import good_day_events, good_days

_HEALED = "The day is what it should be: nothing keeps it back any more."


def held_and_not_shown(instance: dg.DagsterInstance, platform: Platform) -> tuple[HeldDay, ...]:
    """Held days that Dagster does not count among the failed ones, by table and day.

    One that a run holds which is still at work is left to that run.
    """
    holds = platform.ledger.holds()
    if not holds:
        return ()
    partitions = daily_partitions(platform.settings)
    shown = {contract.name: set().union(*_failed(instance, platform, contract)) for contract in platform.catalogue}
    unshown = [
        hold
        for hold in holds
        if hold.table in shown
        and (key := hold.day.isoformat()) not in shown[hold.table]
        and partitions.has_partition_key(key)
    ]
    days = {(hold.table, hold.day) for hold in unshown}
    held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) in days]) if days else ()
    return tuple(day for day in held if _is_over(instance, day.hold.run))


def healed_and_not_shown(instance: dg.DagsterInstance, platform: Platform, told: Cursor) -> Iterator[Elsewhere]:
    """Of every day that Dagster counts among the failed ones, and that is what it should be, what says so.

    Nothing is published where a day became right as it is: what a bad delivery changed was taken out again.

    Args:
        told: how far Dagster is told of publications, which this does not change.
    """
    for contract in platform.catalogue:
        failed, at_work = _failed(instance, platform, contract)
        days = [day for day in platform.calendar.days() if day.isoformat() in failed - at_work]
        good = good_days(platform, contract, days) if days else {}
        for day, event in zip(sorted(good), good_day_events(contract, good), strict=True):
            yield Elsewhere(told, (event, *published_events(contract, good[day], _HEALED)))


def _failed(instance: dg.DagsterInstance, platform: Platform, contract: Contract) -> tuple[set[str], set[str]]:
    """Days that Dagster shows as failed, and those that it shows as being worked at."""
    partitions = daily_partitions(platform.settings)
    # What the pages of Dagster ask, too; it remembers what was, and looks only at what came since.
    now = get_and_update_asset_status_cache_value(instance, asset_key(contract.name), partitions)
    if now is None:
        return set(), set()
    failed = now.deserialize_failed_partition_subsets(partitions)
    at_work = now.deserialize_in_progress_partition_subsets(partitions)
    return set(failed.get_partition_keys()), set(at_work.get_partition_keys())


def _is_over(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is None or run.is_finished
