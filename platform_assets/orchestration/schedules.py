"""The daily run."""

from datetime import timedelta

import dagster as dg

from platform_assets.engine.pending import waiting
from platform_assets.orchestration.jobs import refresh_job
from platform_assets.orchestration.refresh_requests import (
    WORK_TAG,
    describe,
    describe_missing,
    describe_waiting,
    earlier_tries,
    request,
    unfinished_refreshes,
    work_of,
)
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.settings import Settings, SettingsError


def build_daily_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """All tables for the day that just ended, and every earlier day that was missed.

    It requests what is missing now, not what the tick's own date says, so ticks that were missed need no catching up
    and a second tick finds nothing to do.

    Raises:
        SettingsError: `daily_cron` is not a cron expression.
    """
    try:
        return _schedule(settings.daily_cron)
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(
            f"daily_cron is {settings.daily_cron!r}, which is no cron expression.",
            "Write minute, hour, day of month, month and day of week, such as PLATFORM_DAILY_CRON='0 1 * * *'.",
        ) from error


def _schedule(cron: str) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="daily",
        job=refresh_job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Brings all tables up to date for the day that just ended, and for every day missed before.",
    )
    def daily(context: dg.ScheduleEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
        with platform.open() as opened:
            settings = opened.settings
            found = waiting(opened, settings.files_per_run)
            work = work_of(found, opened.versions)
        ended = min(settings.current_day() - timedelta(days=1), settings.last_day())
        parts = (f"up to {ended}: {describe(found)}", describe_missing(found.missing), describe_waiting(found.plan))
        message = "; ".join(filter(None, parts))
        context.log.info(message)
        if not (found.files or found.stale or found.quiet):
            return dg.SkipReason(message)
        for run in unfinished_refreshes(context.instance):
            if run.tags.get(WORK_TAG) == work:
                return dg.SkipReason(f"run {run.run_id} is on its way to do this already; {message}")
        return request(found, work, earlier_tries(context.instance, work))

    return daily
