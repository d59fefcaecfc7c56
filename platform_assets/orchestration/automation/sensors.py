"""What the daemon looks after between daily runs: late data, and what people have to be told.

What plans ask to have told of them: each event once, by the platform's webhook.

Correct backfills that Dagster calls failed though their days are good: it looks at none again that ended.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from platform_assets.contracts.exposures import ANNOUNCEMENTS
from platform_assets.engine.circuits import circuits
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Platform
from platform_assets.operations.audit.decisions import heads_of
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.plan_record import BackfillRecord, Event, records_since
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.external_publications import (
    Shown,
    healed_and_not_shown,
    held_and_not_shown,
    show,
    show_since_last,
)
from platform_assets.orchestration.assets.outcomes import good_days
from platform_assets.orchestration.automation.announcements import (
    Present,
    announced,
    announcements,
    failed_runs,
    open_circuit,
    runs_told_by_days,
)
from platform_assets.orchestration.automation.held_days import held_days_job, request_held_days
from platform_assets.orchestration.automation.refresh_requests import (
    WHY_TAG,
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
from platform_assets.orchestration.jobs import refresh_job, tables_job
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.records.chain import Heads
from platform_assets.records.notes import Channel, Told, ToldHeads
from platform_assets.records.outbox import Message
from platform_assets.visible import as_chat
from platform_assets.words import counted

_EVERY_S = 30
_CHANNELS: tuple[Channel, ...] = ("log", "webhook")

_SHOWING_S = 30.0
"""A tick has a minute; what a slow storage leaves waits for the next one."""


NEWS = timedelta(days=7)
"""What is older is told nobody any more: the outbox may have forgotten that it was."""
_LOOKED_BACK = timedelta(days=7)
_MOST = 20
"""Failed backfills that a tick looks at, the newest."""


@dg.sensor(
    name="late_data",
    # It requests the first; by the second, which has them all, the tables name it as what they are automated by.
    jobs=[refresh_job, tables_job],
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
    """A materialization and its checks for every published or healed day, each once; a run for the held ones."""
    instance, asked, corrected = context.instance, None, 0
    with platform.open() as opened:
        shown = show_since_last(instance, opened, _SHOWING_S)
        healed = Shown(shown.told)
        if not shown.more:
            # Only once all is told: what is published would make a day green that is shown as held before.
            if not unfinished_refreshes(instance):
                healed = show(instance, healed_and_not_shown(instance, opened, shown.told), shown.told, _SHOWING_S)
            asked = request_held_days(instance, held_and_not_shown(instance, opened))
            corrected = correct_backfills(instance, opened)
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
    """Held days with what may be to blame, those that healed, failed runs, each with its reason and a link; and heads.

    What is for the webhook goes into the outbox, which delivers it; so does what plans ask to have told of them.
    """
    with platform.open() as opened:
        notes, has_webhook = opened.ledger.notes, bool(opened.settings.webhook_url)
        logged = notes.told("log")
        sent = notes.told("webhook") if has_webhook else logged
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
            for message in told_plans(records_since(opened.lake, moment - NEWS), moment):
                if not opened.ledger.outbox.named(message.key):  # asked every time; written once
                    notes.tell("webhook", Told(), by=message)
    news = to_log or to_send
    if not news:
        return dg.SkipReason("nothing to announce")
    return dg.SkipReason("announced: " + "; ".join(announcement.title for announcement in news))


def _present(instance: dg.DagsterInstance, platform: Platform, logged: Told, sent: Told) -> Present:
    """What is the case; whatever is announced on both channels is not looked at again."""
    holds = platform.ledger.holds()
    opened = tuple(open_circuit(state.hold(table)) for table, state in circuits(platform).items() if state.stops)
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
    """Of both chains; None where there is nothing in either."""
    heads = heads_of(platform.lake, platform.ledger)
    return None if heads == Heads() else ToldHeads(str(heads), datetime.now(UTC))


def told_plans(records: Iterable[BackfillRecord], now: datetime) -> Iterator[Message]:
    """For the outbox, which takes each once: what happened to plans, as far as their files ask for it.

    Args:
        now: in UTC.
    """
    for record in records:
        for event in record.events:
            if event.kind in record.file.notify and now - event.at < NEWS:
                yield _message(record, event, now)


def _message(record: BackfillRecord, event: Event, now: datetime) -> Message:
    title = " ".join(f"Plan {record.name} of {record.file.owner}, {event.kind}: {event.what}".split())
    body: dict[str, Any] = {
        "text": as_chat(title),
        "what": "plan",
        "plan": record.name,
        "event": event.kind,
        "said": event.what,
        "hash": record.hash,
        "owner": record.file.owner,
        "by": event.who,
        "release": record.release,
        "at": event.at.isoformat(),
    }
    key = sha256(json.dumps([record.name, event.kind, event.what, event.at.isoformat()]).encode()).hexdigest()[:32]
    return Message(key, ANNOUNCEMENTS, title, json.dumps(body), created_at=event.at, due_at=now)


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
