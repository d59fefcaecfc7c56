"""Schedule the daily run, the periodic deep restatement, and maintenance."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import dagster as dg

from platform_assets.engine.late.queue import deep_restatements, late_queue
from platform_assets.engine.pending import waiting
from platform_assets.operations.maintenance.maintenance import plan_maintenance
from platform_assets.orchestration.automation.maintenance import keys_job, maintenance_job
from platform_assets.orchestration.automation.refresh_requests import (
    WHY_TAG,
    WORK_TAG,
    describe,
    describe_missing,
    describe_waiting,
    earlier_tries,
    request,
    unfinished_refreshes,
    work_of,
)
from platform_assets.orchestration.jobs import refresh_job
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.planning.late_queue import counts_of, open_to
from platform_assets.settings import Settings, SettingsError
from platform_assets.words import counted

_RUNNING = dg.DefaultScheduleStatus.RUNNING


def build_schedules(settings: Settings) -> tuple[dg.ScheduleDefinition, ...]:
    """Build the schedules, on from the first start."""
    return (
        _schedule(
            daily,
            "daily_cron",
            settings.daily_cron,
            "Brings all tables up to date for the day that just ended, and for every day missed before.",
        ),
        _schedule(
            deep_restatement,
            "deep_restatement_cron",
            settings.deep_restatement_cron,
            "Takes late rows of tables whose contract says `deep_restatement_days`, and mends their days.",
        ),
        _schedule(
            maintenance,
            "maintenance_cron",
            settings.maintenance_cron,
            "Compacts days, writes checkpoints, and deletes what no release in the rollback window needs.",
            maintenance_job,
        ),
        # Whenever maintenance may run: no plan tells which keys a table holds.
        run_at("keys", keys_job, "maintenance_cron", settings.maintenance_cron),
    )


def daily(context: dg.ScheduleEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request all tables for the day that just ended, and every earlier day that was missed.

    It looks at what is missing now, not at the tick's own date: missed ticks need no catching up.
    """
    with platform.open() as opened:
        settings = opened.settings
        pending = waiting(opened, settings.files_per_run)
        work = work_of(pending, opened.versions)
    ended = min(settings.current_day() - timedelta(days=1), settings.last_day())
    parts = (f"up to {ended}: {describe(pending)}", describe_missing(pending.missing), describe_waiting(pending.plan))
    message = "; ".join(filter(None, parts))
    context.log.info(message)
    if not (pending.files or pending.due or pending.stale or pending.quiet or pending.plan.tries):
        return dg.SkipReason(message)
    for run in unfinished_refreshes(context.instance):
        if run.tags.get(WORK_TAG) == work:
            return dg.SkipReason(f"run {run.run_id} is on its way to do this already; {message}")
    return request(pending, work, earlier_tries(context.instance, work))


def deep_restatement(
    context: dg.ScheduleEvaluationContext, platform: PlatformResource
) -> dg.RunRequest | dg.SkipReason:
    """Request the late rows that contracts leave to it, a month's at a time: old days are recomputed once."""
    with platform.open() as opened:
        queue = late_queue(opened)
        selections = deep_restatements(opened, queue)
    waits = [rows for selection in selections for rows in open_to("approval", queue, selection)]
    if not waits:
        return dg.SkipReason("nothing to do: no late rows wait that a contract leaves to the deep restatement")
    tables = ", ".join(sorted({rows.table for rows in waits}))
    days = len({(rows.table, rows.day) for rows in waits})
    message = f"deep restatement: {counts_of(waits).waiting:,} late rows of {days:,} days ({tables})"
    context.log.info(message)
    return dg.RunRequest(
        run_config={"ops": {"refresh_tables": {"config": {"deep_restatement": True}}}}, tags={WHY_TAG: message}
    )


def maintenance(context: dg.ScheduleEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request what is due by now; looked at without Spark."""
    with platform.open() as opened:
        due = plan_maintenance(opened)
    if not (due.compaction or due.checkpoints or due.deletions):
        return dg.SkipReason("nothing to do: no day has too many files, and everything on disk is needed")
    size = sum(deletion.bytes for deletion in due.deletions)
    message = f"maintenance: {counted(len(due.compaction), 'day')} to compact, {size:,} bytes to delete"
    context.log.info(message)
    return dg.RunRequest(tags={WHY_TAG: message})


def _schedule(
    evaluate: Callable[..., Any], setting: str, cron: str, description: str, job: dg.JobDefinition = refresh_job
) -> dg.ScheduleDefinition:
    with _cron_explained(setting, cron):
        schedule = dg.schedule(
            job=job, cron_schedule=cron, execution_timezone="UTC", default_status=_RUNNING, description=description
        )
        return schedule(evaluate)


def run_at(name: str, job: Any, setting: str, cron: str) -> dg.ScheduleDefinition:
    """Schedule a job that runs at every tick.

    Raises:
        SettingsError: the time is not a cron expression.
    """
    with _cron_explained(setting, cron):
        return dg.ScheduleDefinition(
            name, job=job, cron_schedule=cron, execution_timezone="UTC", default_status=_RUNNING
        )


@contextmanager
def _cron_explained(setting: str, cron: str) -> Iterator[None]:
    try:
        yield
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"{setting} is {cron!r}, which is no cron expression.",
            f"Write minute, hour, day of month, month and day of week, such as PLATFORM_{setting.upper()}='0 1 * * *'.",
        ) from error
