"""Define what runs by the clock: the daily run, the deep restatement, maintenance, and the delivery of the outbox."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import dagster as dg

from platform_assets.engine.late.queue import deep_restatements, late_queue
from platform_assets.engine.moves import keys_on_two_days
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Author
from platform_assets.errors import PlatformError
from platform_assets.operations.maintenance import Maintenance, maintain, plan_maintenance
from platform_assets.operations.outbox import deliver
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
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.jobs import refresh_job
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.orchestration.shown_text import markdown, plain
from platform_assets.planning.late_queue import counts_of, open_to
from platform_assets.planning.retention import TASKS, Task
from platform_assets.settings import Settings, SettingsError
from platform_assets.visible import visible
from platform_assets.words import counted

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
"""Messages that a tick names; `outbox list --all` has them all."""


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
                "`platform-assets verify TABLE --days DAY` tells more; everything else was compacted.",
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
    description="Compaction, checkpoints, and deletion of what nobody needs any more.",
)
def maintenance_job() -> None:
    """Run one task after the other in one Spark session, which starts only if there is something to compact."""
    after = None
    for task in TASKS:
        after = _step(task)() if after is None else _step(task)(after)


@dg.op(name="look_for_keys", description="Look for keys of whole silver tables on two days.", pool=TABLES_POOL)
def _look(platform: PlatformResource) -> None:
    with platform.open() as opened:
        found = keys_on_two_days(opened, opened.catalogue.names)
    if lines := [f"{table}: {one}" for table, repeated in found.items() for one in repeated]:
        todo = "Set moves_within_days to what lies between the days; `platform-assets verify --keys` shows all."
        raise dg.Failure(f"Keys lie on two days and count twice. {visible(lines[0])}.\n{todo}", allow_retries=False)


@dg.job(name="keys", executor_def=dg.in_process_executor, description="Look for keys that lie on two days.")
def keys_job() -> None:
    """Look without Spark."""
    _look()


class DeliveryError(PlatformError):
    """A receiver did not take a message; it is tried again, or was given up."""


@dg.sensor(
    name="outbox",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Delivers what the outbox holds for exposures and the webhook, and tries again what was not taken.",
)
def deliver_messages(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.SkipReason:
    """Deliver every message that is due.

    Raises:
        DeliveryError: a message was not taken; the tick is red, and the next one goes on.
    """
    with platform.open() as opened:
        done = deliver(opened, _SENDING_S)
    tried = len(done.delivered) + len(done.failed)
    if done.failed:
        last = done.failed[-1]
        raise DeliveryError(
            f"{len(done.failed)} of {tried} messages were not delivered. {last.target} {last.problem}.",
            "They are tried again by themselves; `platform-assets outbox list` says when, and what was given up.",
        )
    waits = [f"nothing is sent to {target}: {reason}" for target, reason in done.no_address.items()]
    told = [f"delivered: {message.title}" for message in done.delivered[:_NAMED]]
    if (more := len(done.delivered) - _NAMED) > 0:
        told.append(f"and {counted(more, 'more message')}")
    return dg.SkipReason("; ".join((*told, *waits)) or "nothing is due")


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
