"""The job `held_days`: days that are held without a run of Dagster, shown as failed ones by a run that fails."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import date

import dagster as dg

from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.orchestration.assets.external_publications import held_and_not_shown
from platform_assets.orchestration.assets.outcomes import checks_of_held, days_left, plan_days
from platform_assets.orchestration.automation.refresh_requests import (
    WHY_TAG,
    WORK_TAG,
    earlier_tries,
    pause_left_s,
    unfinished_runs,
)
from platform_assets.orchestration.jobs import log_checks, log_freshness
from platform_assets.orchestration.resources import PlatformResource


@dg.op(description="Show days as failed that are held without a run of Dagster: it starts no Spark session.")
def show_held_days(context: dg.OpExecutionContext, platform: PlatformResource) -> None:
    """Fail for every held day that Dagster does not show, and say of each what holds it.

    Raises:
        RefusedError: there are such days.
    """
    with platform.open() as opened:
        held = held_and_not_shown(context.instance, opened)
        by_table: defaultdict[str, dict[date, HeldDay]] = defaultdict(dict)
        for day in held:
            by_table[day.hold.table][day.hold.day] = day
        for table, days in by_table.items():
            contract = opened.catalogue[table]
            log_checks(context, contract, checks_of_held(contract, days), days)
        log_freshness(context, opened)
    if held:
        plan_days(context, by_table)
        reasons = {
            table: {
                day: f"held since {of_day.since:%Y-%m-%d %H:%M} UTC: {of_day.reason}" for day, of_day in days.items()
            }
            for table, days in by_table.items()
        }
        raise days_left(f"Days held without a run of Dagster: {len(held):,}.", reasons, held)


@dg.job(
    name="held_days",
    executor_def=dg.in_process_executor,
    description="Shows days as failed that the command line holds; the sensor `published_elsewhere` starts it.",
)
def held_days_job() -> None:
    """It computes nothing and publishes nothing."""
    show_held_days()


def request_held_days(instance: dg.DagsterInstance, held: Sequence[HeldDay]) -> dg.RunRequest | None:
    """The request for a run that shows held days; none while one is on its way or such a run did not help just now."""
    if not held or unfinished_runs(instance, held_days_job.name):
        return None
    named = [f"{day.hold.table} {day.hold.day} {day.hold.refused} {day.hold.created_at}" for day in held]
    work = hashlib.sha256("|".join(named).encode()).hexdigest()[:32]
    tries = earlier_tries(instance, work)
    if pause_left_s(tries):
        return None
    return dg.RunRequest(
        job_name=held_days_job.name,
        run_key=f"{work}-{len(tries)}",
        tags={WORK_TAG: work, WHY_TAG: f"{len(held):,} days held without a run of Dagster"},
    )
