"""What the daemon looks after between daily runs: late data, and what people have to be told."""

import time
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Platform
from platform_assets.orchestration.assets.external_publications import published_elsewhere
from platform_assets.orchestration.automation.announcements import (
    Announcement,
    announcements,
    failed_runs,
)
from platform_assets.orchestration.automation.refresh_requests import (
    asset_runs_at_work,
    clock_time,
    describe,
    describe_waiting,
    earlier_tries,
    pause_left_s,
    request,
    unfinished_refreshes,
    work_of,
)
from platform_assets.orchestration.automation.webhook import WebhookError, post
from platform_assets.orchestration.jobs import refresh_job
from platform_assets.orchestration.resources import PlatformResource

_EVERY_S = 30
_SENDING_S = 30.0
"""A tick has a minute; what a slow webhook leaves waits for the next one."""


@dg.sensor(
    name="late_data",
    job_name=refresh_job.name,  # by name: Dagster 1.13 warns of its own `owners` when it copies a sensor with a job
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Takes newly landed files and recomputes exactly the days they touch, old ones included.",
)
def late_data(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """One run for everything that waits; days that a dead run left stale count too."""
    if refreshes := unfinished_refreshes(context.instance):
        return dg.SkipReason(f"run {refreshes[0].run_id} of refresh is on its way; what landed since waits for its end")
    takers, others = asset_runs_at_work(context.instance)
    if takers:
        return dg.SkipReason(f"run {takers[0].run_id} is taking files itself; what it leaves is taken after its end")
    with platform.open() as opened:
        # Days without deliveries are the daily run's: nobody waits for them.
        pending = replace(waiting(opened, opened.settings.files_per_run), quiet={})
        work = work_of(pending, opened.versions)
    message = "; ".join(filter(None, (describe(pending), describe_waiting(pending.plan))))
    if not (pending.files or pending.due or pending.stale):
        return dg.SkipReason(message)
    if others and not (pending.files or pending.due):
        return dg.SkipReason(f"{message}; run {others[0].run_id} may be computing them")
    tries = earlier_tries(context.instance, work)
    if left_s := pause_left_s(tries):
        last = tries[0].dagster_run
        return dg.SkipReason(
            f"{message}; run {last.run_id} left this undone ({last.status.value.lower()}), "
            f"next try at {clock_time(left_s)}, or run `refresh` by hand"
        )
    context.log.info(message)
    return request(pending, work, tries)


@dg.sensor(
    name="published_elsewhere",
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Shows the days that were published without Dagster, by the command line for one.",
)
def show_published_elsewhere(
    context: dg.SensorEvaluationContext, platform: PlatformResource
) -> dg.SensorResult | dg.SkipReason:
    """A materialization and its checks for every such day, each once."""
    with platform.open() as opened:
        elsewhere = published_elsewhere(context.instance, opened, int(context.cursor or -1))
    if not elsewhere.events:
        context.update_cursor(str(elsewhere.until))
        return dg.SkipReason("nothing was published without Dagster")
    rest = "; the rest with the next tick" if elsewhere.more else ""
    message = f"shown now: days published without Dagster, {elsewhere.days:,} over all tables{rest}"
    return dg.SensorResult(asset_events=list(elsewhere.events), cursor=str(elsewhere.until), skip_reason=message)


@dg.sensor(
    name="announcements",
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Says once, in the log and to a webhook if one is set, that a day is held or a run has failed.",
)
def announce(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Held days and failed runs, each with its reason and a link.

    Raises:
        WebhookError: something could not be sent; it is sent with a later tick.
    """
    with platform.open() as opened:
        notes = opened.ledger.notes
        logged = notes.told("log")
        sent = notes.told("webhook") if opened.settings.webhook_url else logged
        holds = opened.ledger.holds()
        failed = failed_runs(context.instance, logged.runs & sent.runs)
        known = {hold.run for hold in holds if context.instance.has_run(hold.run)}
        ui_url = opened.settings.ui_url
        to_log = announcements(holds, failed, logged, known, ui_url)
        for announcement in to_log:
            context.log.error(announcement.text)
            notes.tell("log", announcement.about)
        to_send = announcements(holds, failed, sent, known, ui_url) if opened.settings.webhook_url else []
        _send(opened, to_send)
    news = to_log or to_send
    if not news:
        return dg.SkipReason("nothing to announce")
    return dg.SkipReason("announced: " + "; ".join(announcement.title for announcement in news))


def _send(platform: Platform, to_send: Sequence[Announcement]) -> None:
    """Send to the webhook; one that fails keeps no other from being sent."""
    if (url := platform.settings.webhook_url) is None:
        return
    stop = time.monotonic() + _SENDING_S
    failures: list[WebhookError] = []
    for announced in to_send:
        if time.monotonic() > stop:
            break
        try:
            post(url, announced.payload)
        except WebhookError as error:
            failures.append(error)
        else:
            platform.ledger.notes.tell("webhook", announced.about)
    if failures:
        last = failures[-1]
        raise WebhookError(f"{len(failures)} of {len(to_send)} announcements were not sent. {last.what}", last.todo)
