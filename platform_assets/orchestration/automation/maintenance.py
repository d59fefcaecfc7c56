"""Define the jobs `maintenance` and `keys`, and the sensor that delivers the outbox between daily runs."""

import dagster as dg

from platform_assets.engine.platform import Author
from platform_assets.engine.step.repeated_keys import keys_on_two_days
from platform_assets.errors import PlatformError
from platform_assets.operations.maintenance.maintenance import Maintenance
from platform_assets.operations.maintenance.tasks import maintain
from platform_assets.operations.outbox import deliver
from platform_assets.orchestration.automation.refresh_requests import WHY_TAG
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.orchestration.shown_text import markdown, plain
from platform_assets.planning.retention import TASKS, Task
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
