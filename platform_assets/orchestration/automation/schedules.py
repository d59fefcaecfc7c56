"""Schedules, and sensors for work done without Dagster and for waiting messages.

By the clock: the daily run, the deep restatement, maintenance, freshness and comparisons.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

import dagster as dg

from platform_assets.engine.moves import keys_on_two_days
from platform_assets.engine.platform import Author
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.operations.maintenance import Maintenance, maintain, plan_maintenance
from platform_assets.operations.outbox import deliver
from platform_assets.orchestration.assets.checks import checks_of_held, days_left
from platform_assets.orchestration.assets.events import markdown, plain
from platform_assets.orchestration.assets.publications import (
    Shown,
    healed_and_not_shown,
    held_and_not_shown,
    show,
    show_since_last,
)
from platform_assets.orchestration.automation.refresh_requests import (
    WHY_TAG,
    WORK_TAG,
    daily,
    deep_restatement,
    earlier_tries,
    pause_left_s,
    unfinished_refreshes,
    unfinished_runs,
)
from platform_assets.orchestration.instance.events import plan_days
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.jobs import log_checks, log_freshness, refresh_job
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.planning.retention import TASKS, Task
from platform_assets.settings import Settings, SettingsError
from platform_assets.words import counted, visible

_EVERY_S = 30

_SHOWING_S = 30.0
"""A tick has a minute; what a slow storage leaves waits for the next one."""


@dg.op(description="Show days as failed that are held without a run of Dagster: it starts no Spark session.")
def show_held_days(context: dg.OpExecutionContext, platform: PlatformResource) -> None:
    """Fail for every held day that Dagster does not show, each with its hold."""
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
    """Request a run that shows held days, unless one is queued, or one just failed to help."""
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
    """Report every published or healed day with its checks, each once; request a run for held ones."""
    instance, asked = context.instance, None
    with platform.open() as opened:
        shown = show_since_last(instance, opened, _SHOWING_S)
        healed = Shown(shown.cursor)
        if not shown.more:
            # Only once all is reported: a publication would make a day green that is shown as held before.
            if not unfinished_refreshes(instance):
                healed = show(instance, healed_and_not_shown(instance, opened, shown.cursor), shown.cursor, _SHOWING_S)
            asked = request_held_days(instance, held_and_not_shown(instance, opened))
    failed = (*shown.failed, *healed.failed)
    for event in failed:
        context.log.error(f"Dagster does not take {event}")
    parts: list[str] = []
    if shown.days or shown.failed:
        rest = "; the rest with the next tick" if shown.more else ""
        parts.append(f"days published without Dagster, {shown.days:,} over all tables{rest}")
    if healed.days:
        parts.append(f"days that are held no more, {healed.days:,} over all tables")
    if failed:
        parts.append(f"Dagster did not take {counted(len(failed), 'event')}, see the tick's log")
    message = f"shown now: {'; '.join(parts)}" if parts else "nothing was published without Dagster"
    if asked is None:
        return dg.SkipReason(message)
    context.log.info(f"{message}; {asked.tags[WHY_TAG]}, a run shows them")
    return asked


_DOES: dict[Task, str] = {
    "compaction": "Make one file of the small files of days that have many; their content stays equal.",
    "checkpoints": "Sum up logs, so that Spark and others read them faster.",
    "stages": "Remove what was staged, never published and left behind.",
    "deletion": "Delete what no release in the rollback window, pin or open stage needs.",
}

_MOST_SHOWN = 50
_SENDING_S = 30.0
"""A tick has a minute; what slow receivers leave waits for the next one."""
_NAMED = 10
"""Messages that a tick names; `status messages --all` has them all."""


def _step(task: Task) -> dg.OpDefinition:
    ins = {"after": dg.In(dg.Nothing)} if task != TASKS[0] else {}

    # The pool of the tables: maintenance waits for a backfill, and today's data for neither.
    @dg.op(name=task, description=_DOES[task], pool=TABLES_POOL, ins=ins)
    def step(context: dg.OpExecutionContext, platform: PlatformResource, spark: SparkResource) -> None:
        author = Author(run=context.run_id, why=context.run.tags.get(WHY_TAG, "maintenance"))
        with platform.open() as opened:
            done = maintain(opened, lambda: spark.spark_session, task, author)
        context.add_output_metadata(_metadata(task, done))
        for table, days in done.busy.items():
            left = counted(len(days), "day")
            context.log.info(f"{table}: {left} left for the next time: {next(iter(days.values()))}")
        if done.differing:
            # The steps after this one are not done: what they would delete may be what mends those days.
            named = "; ".join(f"{table} {days[0]} and {len(days) - 1:,} more" for table, days in done.differing.items())
            raise dg.Failure(
                f"Files hold other rows than were published, and were left alone: {named}.\n"
                "`platform-assets admin verify TABLE --days DAY` shows more; everything else was compacted.",
                metadata=_metadata(task, done),
                allow_retries=False,
            )

    return step


def _metadata(task: Task, done: Maintenance) -> dict[str, dg.MetadataValue]:
    match task:
        case "compaction":
            rows = {table: _days(done, table) for table in sorted({day.table for day in done.compaction})}
            return _table(("table", "days", "files", "bytes"), rows) | {
                "days": dg.MetadataValue.int(len(done.compaction)),
                "left for the next time": dg.MetadataValue.int(sum(map(len, done.busy.values()))),
            }
        case "checkpoints":
            rows = {table: (version,) for table, version in done.checkpoints.items()}
            return _table(("table", "version"), rows)
        case _:
            rows = {
                f"{deletion.table} {deletion.publication}": (len(deletion.files), deletion.bytes)
                for deletion in done.deletions
            }
            return _table(("what", "files", "bytes"), rows) | {
                "files": dg.MetadataValue.int(sum(len(deletion.files) for deletion in done.deletions)),
                "bytes": dg.MetadataValue.int(sum(deletion.bytes for deletion in done.deletions)),
            }


def _days(done: Maintenance, table: str) -> tuple[int, ...]:
    days = [day for day in done.compaction if day.table == table]
    return len(days), sum(len(day.small) for day in days), sum(day.bytes for day in days)


def _table(columns: tuple[str, ...], rows: dict[str, tuple[int, ...]]) -> dict[str, dg.MetadataValue]:
    if not rows:
        return {"done": plain("nothing was due")}
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join((name, *(f"{value:,}" for value in row))) for name, row in list(rows.items())[:_MOST_SHOWN]]
    more = f"\n\nand {len(rows) - _MOST_SHOWN:,} more" if len(rows) > _MOST_SHOWN else ""
    return {"done": markdown("\n".join(lines) + more)}


@dg.job(
    name="maintenance",
    executor_def=dg.in_process_executor,
    description="Compaction, checkpoints, and deletion of unneeded files.",
)
def maintenance_job() -> None:
    """Run the tasks one after the other in one Spark session, which starts only for a compaction."""
    after = None
    for task in TASKS:
        after = _step(task)() if after is None else _step(task)(after)


@dg.op(name="look_for_keys", description="Look for keys of whole silver tables on two days.", pool=TABLES_POOL)
def _look(platform: PlatformResource) -> None:
    with platform.open() as opened:
        found = keys_on_two_days(opened, opened.catalogue.names)
    if lines := [f"{table}: {one}" for table, repeated in found.items() for one in repeated]:
        todo = "Set moves_within_days to what lies between the days; `platform-assets admin verify --keys` shows all."
        raise dg.Failure(f"Keys are on two days and count twice. {visible(lines[0])}.\n{todo}", allow_retries=False)


@dg.job(name="keys", executor_def=dg.in_process_executor, description="Look for keys on two days.")
def keys_job() -> None:
    """Search without Spark."""
    _look()


class DeliveryError(PlatformError):
    """A receiver did not accept a message; it is tried again, or was given up."""


@dg.sensor(
    name="outbox",
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Delivers what the outbox holds for exposures and the webhook, and retries what was not accepted.",
)
def deliver_messages(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Deliver every message that is due.

    Raises:
        DeliveryError: a message was not accepted; the tick is red, and the next one continues.
    """
    with platform.open() as opened:
        done = deliver(opened, _SENDING_S)
    tried = len(done.delivered) + len(done.failed)
    if done.failed:
        last = done.failed[-1]
        raise DeliveryError(
            f"{len(done.failed)} of {tried} messages were not delivered. {last.target} {last.problem}.",
            "They are tried again by themselves; `platform-assets status messages` says when, and what was given up.",
        )
    waits = [f"nothing is sent to {target}: {reason}" for target, reason in done.no_address.items()]
    sent = [f"delivered: {message.title}" for message in done.delivered[:_NAMED]]
    if (more := len(done.delivered) - _NAMED) > 0:
        sent.append(f"and {counted(more, 'more message')}")
    return dg.SkipReason("; ".join((*sent, *waits)) or "nothing is due")


_RUNNING = dg.DefaultScheduleStatus.RUNNING


def build_schedules(
    settings: Settings, freshness: dg.AssetChecksDefinition, comparisons: Sequence[dg.AssetChecksDefinition]
) -> list[dg.ScheduleDefinition]:
    """Build the schedules, which run from the first start.

    Args:
        freshness: checked every hour, also for tables that no run touches.
        comparisons: checks of declared comparisons; without any there is no schedule.
    """
    looking = dg.define_asset_job(
        "check_freshness",
        selection=dg.AssetSelection.checks(*freshness.check_keys),
        description="Look which days are overdue.",
    )
    comparing = [
        dg.define_asset_job(
            "compare",
            selection=dg.AssetSelection.checks(checks),
            description="Compare tables with the sides that their contracts name.",
        )
        for checks in comparisons
    ]
    return [
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
            "Ingests late rows of tables whose contract has `deep_restatement_days`, and recomputes their days.",
        ),
        _schedule(
            maintenance,
            "maintenance_cron",
            settings.maintenance_cron,
            "Compacts days, writes checkpoints, and deletes what no release in the rollback window needs.",
            maintenance_job,
        ),
        # At maintenance's time: it scans all keys of a table.
        _run_at("keys", keys_job, "maintenance_cron", settings.maintenance_cron),
        _run_at("hourly_freshness", looking, "", "45 * * * *"),
        *(_run_at("comparisons", job, "reconcile_cron", settings.reconcile_cron) for job in comparing),
    ]


def maintenance(context: dg.ScheduleEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request due maintenance, found without Spark."""
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


def _run_at(name: str, job: Any, setting: str, cron: str) -> dg.ScheduleDefinition:
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
