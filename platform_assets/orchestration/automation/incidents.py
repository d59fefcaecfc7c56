"""The sensor of announcements, and incidents: announced on a route once, and once more when they are over.

An incident is a kind of trouble of one table, or failures of one job: while it lasts, more of it is not announced. The
log and the webhook get every announcement instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import dagster as dg

from platform_assets.contracts.domain import ROUTE
from platform_assets.engine.circuits import circuits
from platform_assets.engine.platform import Platform
from platform_assets.operations.audit import heads_of
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.plan_record import records_since
from platform_assets.orchestration.assets.checks import good_days
from platform_assets.orchestration.automation.announcements import (
    LOOK_BACK,
    MOST_RUNS,
    NEWS,
    Announcement,
    Present,
    announced_day,
    announcement_of_holds,
    announcement_of_run,
    announcements,
    drift_messages,
    failed_runs,
    open_circuit,
    plan_messages,
    runs_announced_by_days,
)
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.records.chain import Heads
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import CIRCUIT, Hold
from platform_assets.records.outbox import Announced, AnnouncedDay, AnnouncedHeads, Channel, Message
from platform_assets.routes import Kind, Route

_EVERY_S = 30
_CHANNELS: tuple[Channel, ...] = ("log", "webhook")

_FAILED = Attempt("failed")

Incident = tuple[str, Kind]
"""A table or a job, and what is wrong with it."""


class Event(NamedTuple):
    """A message about what happened once, and the owner whom it is for."""

    kind: Kind
    owner: str
    message: Message


def standing(now: Present) -> dict[Incident, Callable[[], Announcement]]:
    """Return every lasting incident, each with the function that makes its announcement."""
    holds: defaultdict[Incident, list[Hold]] = defaultdict(list)
    for hold in now.holds:
        holds[hold.table, "circuit" if hold.gate == CIRCUIT else "held"].append(hold)
    found: dict[Incident, Callable[[], Announcement]] = {
        (table, kind): partial(announcement_of_holds, table, group[-1].run, group, now)
        for (table, kind), group in holds.items()
    }
    silent = runs_announced_by_days(now)
    for run in now.failed:
        if run.run_id in now.failing - silent:
            found[run.job, "failed"] = partial(announcement_of_run, run, now.ui_url)
    return found


def news(
    now: Present, announced: Announced, route: Route, owners: Mapping[str, frozenset[str]]
) -> Iterator[Announcement]:
    """Yield what a route was not sent yet: incidents that began, and announced ones that ended.

    Args:
        announced: announced incidents of the route.
        owners: owners by table, and by job for the tables that its failed runs left.
    """
    lasting = standing(now)
    known = {(row.table, row.refused.fingerprint): row for row in announced.held if isinstance(row.refused, Attempt)}
    for (subject, kind), make in sorted(lasting.items(), key=lambda each: each[0]):
        if (subject, kind) not in known and route.wants(kind, owners.get(subject, frozenset())):
            row = AnnouncedDay(subject, datetime.now(UTC).date(), Attempt(kind))
            yield replace(make(), about=Announced(held=frozenset({row})))
    for incident, row in sorted(known.items()):
        # A job that is silent, or whose failure is long ago, has not recovered.
        if incident not in lasting and (incident[1] != "failed" or incident[0] in now.recovered):
            yield _over(*incident, now.ui_url, row)


def _over(subject: str, kind: str, ui_url: str, row: AnnouncedDay) -> Announcement:
    titles = {
        "held": f"{subject}: no day is held any more; readers see the newest content.",
        "circuit": f"{subject}: its circuit is closed; waiting days are published again.",
        "failed": f"{subject} succeeded again.",
    }
    link = f"{ui_url}/{'runs' if kind == 'failed' else f'assets/{subject}?view=partitions'}"
    text = f"{titles[kind]}\n{link}"
    return Announcement(Announced(), titles[kind], text, {"text": text, "what": "healed"}, frozenset({row}))


def route_messages(platform: Platform, now: Present, events: Sequence[Event], moment: datetime) -> Iterator[str]:
    """Write the news of each route into the outbox, and yield their titles. In quiet hours a route gets nothing.

    An incident that ends within these hours is never announced.

    Args:
        events: messages about plans and columns, each announced once, whether or not it is still so.
    """
    owners = {contract.name: frozenset({contract.owner}) for contract in platform.catalogue}
    for run in now.failed:
        owners[run.job] = frozenset().union(*(owners.get(table, ()) for table, _ in run.left))
    notes, outbox = platform.ledger.notes, platform.ledger.outbox
    for name, route in platform.settings.notify.items():
        target = f"{ROUTE}{name}"
        if route.is_quiet(moment):
            continue
        for each in news(now, notes.announced(target), route, owners):
            message = replace(each.message(moment), target=target)
            notes.mark_announced(target, each.about, each.over, by=message)
            yield each.title
        for kind, owner, message in events:
            key = sha256(f"{message.key} {name}".encode()).hexdigest()[:32]
            if route.wants(kind, frozenset({owner})) and not outbox.with_key(key):
                notes.mark_announced(target, Announced(), by=replace(message, key=key, target=target))
                yield message.title


def recent_events(platform: Platform, moment: datetime) -> list[Event]:
    """Return what happened within a week to plans, as far as they ask for it, and to columns of raw tables."""
    plans = records_since(platform.lake, moment - NEWS)
    drifts = drift_messages(platform.ledger.schema_drift(), platform.catalogue, moment)
    found = [Event("plan", each.file.owner, message) for each in plans for message in plan_messages([each], moment)]
    return [*found, *(Event("schema", owner, message) for owner, message in drifts)]


@dg.sensor(
    name="announcements",
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Says once, in the log and by the outbox if a webhook is set, that a day is held or healed, a circuit "
    "opened or closed, a run failed, or columns came otherwise than declared.",
)
def announce(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Announce held days with possible causes, healed ones, failed runs, each with reason and link; and heads.

    Announcements for the webhook go into the outbox, which delivers them; so do events that plans subscribe to, and
    files that first showed columns otherwise than declared.
    """
    with platform.open() as opened:
        notes, has_webhook = opened.ledger.notes, bool(opened.settings.webhook_url)
        logged = notes.announced("log")
        sent = notes.announced("webhook") if has_webhook else logged
        now = _present(context.instance, opened, logged, sent)
        for channel in _CHANNELS if has_webhook else _CHANNELS[:1]:
            notes.mark_announced(channel, Announced(runs=runs_announced_by_days(now)))
        to_log = announcements(now, logged)
        for announcement in to_log:
            # What healed is good news; all else wants a look.
            (context.log.info if announcement.over else context.log.error)(announcement.text)
            notes.mark_announced("log", announcement.about, announcement.over)
        to_send = announcements(replace(now, heads=_heads(opened)), sent) if has_webhook else []
        for announcement in to_send:
            notes.mark_announced(
                "webhook", announcement.about, announcement.over, by=announcement.message(datetime.now(UTC))
            )
        moment, routes = datetime.now(UTC), opened.settings.notify
        events = recent_events(opened, moment) if has_webhook or routes else []
        for _, _, message in events if has_webhook else ():
            if not opened.ledger.outbox.with_key(message.key):  # asked every time; written once
                notes.mark_announced("webhook", Announced(), by=message)
        to_routes = list(route_messages(opened, now, events, moment)) if routes else []
    titles = [announcement.title for announcement in to_log or to_send] or to_routes
    return dg.SkipReason(f"announced: {'; '.join(titles)}" if titles else "nothing to announce")


def _present(instance: dg.DagsterInstance, platform: Platform, logged: Announced, sent: Announced) -> Present:
    """Read the state of the platform. Skips what is announced on both channels already."""
    holds = platform.ledger.holds()
    states = circuits(platform).items()
    opened = tuple(open_circuit(state.hold(table)) for table, state in states if state.state != "closed")
    new = {(hold.table, hold.day) for hold in holds if announced_day(hold) not in logged.held & sent.held}
    held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) in new])
    announced = (platform.ledger.notes.announced(f"{ROUTE}{name}") for name in platform.settings.notify)
    subjects = {row.table for each in announced for row in each.held if row.refused == _FAILED}
    newest = newest_ended(instance, subjects) if platform.settings.notify else []
    failing = frozenset(run.run_id for run in newest if run.status == dg.DagsterRunStatus.FAILURE)
    failed = failed_runs(instance, (logged.runs & sent.runs) - failing)
    left: defaultdict[str, set[date]] = defaultdict(set)
    for table, day in {each for run in failed for each in run.left}:
        left[table].add(day)
    known = [platform.catalogue[name] for name in left if name in platform.catalogue.names]
    return Present(
        holds=(*holds, *opened),
        failed=failed,
        failing=failing,
        recovered=frozenset(run.job_name for run in newest if run.run_id not in failing),
        good={(table.name, day) for table in known for day in good_days(platform, table, left[table.name])},
        details={(day.hold.table, day.hold.day): day for day in held},
        known_runs={hold.run for hold in (*holds, *opened) if instance.has_run(hold.run)},
        ui_url=platform.settings.ui_url,
    )


def newest_ended(instance: dg.DagsterInstance, known: Collection[str]) -> list[dg.DagsterRun]:
    """Return the newest ended run of each job that failed in the last week, or is known to have failed."""
    since = datetime.now(UTC) - LOOK_BACK
    failures = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    jobs = {record.dagster_run.job_name for record in instance.get_run_records(failures, limit=MOST_RUNS)}
    ended = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS]
    filters = [dg.RunsFilter(job_name=job, statuses=ended) for job in sorted(jobs.union(known))]
    return [run for each in filters for run in instance.get_runs(each, limit=1)]


def _heads(platform: Platform) -> AnnouncedHeads | None:
    """Return the heads of both chains; None if both are empty."""
    heads = heads_of(platform.lake, platform.ledger)
    return None if heads == Heads() else AnnouncedHeads(str(heads), datetime.now(UTC))
