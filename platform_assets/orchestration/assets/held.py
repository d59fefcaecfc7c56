"""What keeps days from being published, and that Dagster counts them among the failed ones."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import date

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.planning.day_states import Blocked, Held

_MOST_DAYS = 50
"""Days of a table of which all is looked up: that opens files of raw days."""


def what_holds(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, HeldDay]:
    """What is to be said of some days that are held: of each its own hold, or that of a day which it reads.

    Args:
        platform: what to look at.
        contract: of the table.
        days: that were not published; of many the oldest are looked at, of a raw table none: nothing holds them.
    """
    if not contract.inputs or not days:
        return {}
    _, states = states_around(LakeSnapshot.now(platform), contract, sorted(days)[:_MOST_DAYS])
    holds = {day: state.hold for day, state in states.items() if isinstance(state, Held | Blocked) and state.hold}
    named = {(hold.table, hold.day) for hold in holds.values()}
    standing = [hold for hold in platform.ledger.holds() if (hold.table, hold.day) in named] if named else []
    said = {(held.hold.table, held.hold.day): held for held in held_days(platform, standing)}
    return {day: said[hold.table, hold.day] for day, hold in holds.items() if (hold.table, hold.day) in said}


def plan_days(context: dg.OpExecutionContext, days: Mapping[str, Collection[date]]) -> None:
    """Say in a run that names no assets which days it was to make: if it fails, these are failed until they are made.

    To Dagster a day has failed while the run that planned it last has failed and nothing was materialized since; it
    plans the days of a run of assets by itself.

    Args:
        context: of a step that is about to fail.
        days: that it did not publish, by table.
    """
    step = context.get_step_execution_context().step.key
    for table, of_table in days.items():
        for day in sorted(of_table):
            data = AssetMaterializationPlannedData(asset_key(table), partition=day.isoformat())
            event = DagsterEvent.build_asset_materialization_planned_event(context.job_name, step, data)
            context.instance.report_dagster_event(event, context.run_id, logging.DEBUG)
