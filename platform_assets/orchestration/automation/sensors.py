"""Look after what happens between daily runs: late data, work done without Dagster, and news for people."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from platform_assets.engine.circuits import circuits
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Platform
from platform_assets.operations.audit import heads_of
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.plan_record import records_since
from platform_assets.orchestration.assets.checks import checks_of_held, days_left, good_days
from platform_assets.orchestration.assets.publications import (
    Shown,
    healed_and_not_shown,
    held_and_not_shown,
    show,
    show_since_last,
)
from platform_assets.orchestration.automation.announcements import (
    NEWS,
    Present,
    announced,
    announcements,
    failed_runs,
    open_circuit,
    plan_messages,
    runs_told_by_days,
)
from platform_assets.orchestration.automation.refresh_requests import (
    WHY_TAG,
    WORK_TAG,
    asset_runs_at_work,
    clock_time,
    describe,
    describe_waiting,
    earlier_tries,
    pause_left_s,
    request,
    unfinished_refreshes,
    unfinished_runs,
    work_of,
)
from platform_assets.orchestration.instance.events import correct_backfills, plan_days
from platform_assets.orchestration.jobs import log_checks, log_freshness, refresh_job, tables_job
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.records.chain import Heads
from platform_assets.records.outbox import Channel, Told, ToldHeads
from platform_assets.words import counted

_EVERY_S = 30
_CHANNELS: tuple[Channel, ...] = ("log", "webhook")

_SHOWING_S = 30.0
"""A tick has a minute; what a slow storage leaves waits for the next one."""

_LOOKED_BACK = timedelta(days=7)
"""Backfills that were begun earlier are not corrected any more."""


@dg.sensor(
    name="late_data",
    # It requests the first; by the second, which has them all, the tables name it as what they are automated by.
    jobs=[refresh_job, tables_job],
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Takes newly landed files and recomputes exactly the days they touch, old ones included.",
)
def late_data(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request one run for everything that waits; days that a dead run left stale count too."""
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
    if not (pending.files or pending.due or pending.stale or pending.plan.tries):
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


@dg.op(description="Show days as failed that are held without a run of Dagster: it starts no Spark session.")
def show_held_days(context: dg.OpExecutionContext, platform: PlatformResource) -> None:
    """Fail for every held day that Dagster does not show, and say of each what holds it."""
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
    """Compute and publish nothing."""
    show_held_days()


def request_held_days(instance: dg.DagsterInstance, held: Sequence[HeldDay]) -> dg.RunRequest | None:
    """Request a run that shows held days, unless one is on its way, or one did not help just now."""
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


@dg.sensor(
    name="published_elsewhere",
    job=held_days_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Shows the days that were published or held without Dagster, by the command line for one, or healed.",
)
def show_published_elsewhere(
    context: dg.SensorEvaluationContext, platform: PlatformResource
) -> dg.RunRequest | dg.SkipReason:
    """Report every published or healed day with its checks, each once; request a run for the held ones."""
    instance, asked, corrected = context.instance, None, 0
    with platform.open() as opened:
        shown = show_since_last(instance, opened, _SHOWING_S)
        healed = Shown(shown.told)
        if not shown.more:
            # Only once all is told: what is published would make a day green that is shown as held before.
            if not unfinished_refreshes(instance):
                healed = show(instance, healed_and_not_shown(instance, opened, shown.told), shown.told, _SHOWING_S)
            asked = request_held_days(instance, held_and_not_shown(instance, opened))
            corrected = correct_backfills(
                instance, datetime.now(UTC) - _LOOKED_BACK, lambda key, days: _good_days(opened, key, days)
            )
    failed = (*shown.failed, *healed.failed)
    for event in failed:
        context.log.error(f"Dagster does not take {event}")
    told: list[str] = []
    if shown.days or shown.failed:
        rest = "; the rest with the next tick" if shown.more else ""
        told.append(f"days published without Dagster, {shown.days:,} over all tables{rest}")
    if healed.days:
        told.append(f"days that are held no more, {healed.days:,} over all tables")
    if corrected:
        told.append(f"good days of {counted(corrected, 'failed backfill')}")
    if failed:
        told.append(f"Dagster did not take {counted(len(failed), 'event')}, see the tick's log")
    message = f"shown now: {'; '.join(told)}" if told else "nothing was published without Dagster"
    if asked is None:
        return dg.SkipReason(message)
    context.log.info(f"{message}; {asked.tags[WHY_TAG]}, a run shows them")
    return asked


@dg.sensor(
    name="announcements",
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Says once, in the log and by the outbox if a webhook is set, that a day is held or healed, a circuit "
    "opened or closed, or a run failed.",
)
def announce(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Announce held days with what may be to blame, healed ones, failed runs, each with reason and link; and heads.

    What is for the webhook goes into the outbox, which delivers it; so does what plans ask to have told of them.
    """
    with platform.open() as opened:
        notes, has_webhook = opened.ledger.notes, bool(opened.settings.webhook_url)
        logged = notes.announced("log")
        sent = notes.announced("webhook") if has_webhook else logged
        now = _present(context.instance, opened, logged, sent)
        for channel in _CHANNELS if has_webhook else _CHANNELS[:1]:
            notes.tell(channel, Told(runs=runs_told_by_days(now)))
        to_log = announcements(now, logged)
        for announcement in to_log:
            # What healed is good news; all else wants a look.
            (context.log.info if announcement.over else context.log.error)(announcement.text)
            notes.tell("log", announcement.about, announcement.over)
        to_send = announcements(replace(now, heads=_heads(opened)), sent) if has_webhook else []
        for announcement in to_send:
            notes.tell("webhook", announcement.about, announcement.over, by=announcement.message(datetime.now(UTC)))
        if has_webhook:
            moment = datetime.now(UTC)
            for message in plan_messages(records_since(opened.lake, moment - NEWS), moment):
                if not opened.ledger.outbox.named(message.key):  # asked every time; written once
                    notes.tell("webhook", Told(), by=message)
    news = to_log or to_send
    if not news:
        return dg.SkipReason("nothing to announce")
    return dg.SkipReason("announced: " + "; ".join(announcement.title for announcement in news))


def _present(instance: dg.DagsterInstance, platform: Platform, logged: Told, sent: Told) -> Present:
    """Look at the platform; what is announced on both channels is not looked at again."""
    holds = platform.ledger.holds()
    states = circuits(platform).items()
    opened = tuple(open_circuit(state.hold(table)) for table, state in states if state.state != "closed")
    new = {(hold.table, hold.day) for hold in holds if announced(hold) not in logged.held & sent.held}
    held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) in new])
    failed = failed_runs(instance, logged.runs & sent.runs)
    left: defaultdict[str, set[date]] = defaultdict(set)
    for table, day in {each for run in failed for each in run.left}:
        left[table].add(day)
    known = [platform.catalogue[name] for name in left if name in platform.catalogue.names]
    return Present(
        holds=(*holds, *opened),
        failed=failed,
        good={(table.name, day) for table in known for day in good_days(platform, table, left[table.name])},
        details={(day.hold.table, day.hold.day): day for day in held},
        known_runs={hold.run for hold in (*holds, *opened) if instance.has_run(hold.run)},
        ui_url=platform.settings.ui_url,
    )


def _heads(platform: Platform) -> ToldHeads | None:
    """Return where both chains stand; None where there is nothing in either."""
    heads = heads_of(platform.lake, platform.ledger)
    return None if heads == Heads() else ToldHeads(str(heads), datetime.now(UTC))


def _good_days(platform: Platform, key: dg.AssetKey, failed: set[str]) -> list[str]:
    """Return those of some partitions that are what they should be; none of an asset that is no table."""
    table = key.path[-1]
    if table not in platform.catalogue.names:
        return []
    days = [day for day in platform.calendar.days() if str(day) in failed]
    return [*map(str, good_days(platform, platform.catalogue[table], days))]
