"""The job `keys`: one step, which fails if a key of a silver table lies on two days."""

import dagster as dg

from platform_assets.engine.step.repeated_keys import keys_on_two_days
from platform_assets.orchestration.instance.pools import TABLES_POOL
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.visible import visible


@dg.op(name="look_for_keys", description="Look for keys of whole silver tables on two days.", pool=TABLES_POOL)
def _look(platform: PlatformResource) -> None:
    with platform.open() as opened:
        found = keys_on_two_days(opened, opened.catalogue.names)
    if lines := [f"{table}: {one}" for table, repeated in found.items() for one in repeated]:
        todo = "Set moves_within_days to what lies between the days; `platform-assets verify --keys` shows all."
        raise dg.Failure(f"Keys lie on two days and count twice. {visible(lines[0])}.\n{todo}", allow_retries=False)


@dg.job(name="keys", executor_def=dg.in_process_executor, description="Look for keys that lie on two days.")
def keys_job() -> None:
    """One step without Spark."""
    _look()


def build_keys_schedule(cron: str) -> dg.ScheduleDefinition:
    """Run the job whenever maintenance may: no plan tells which keys a table holds."""
    running = dg.DefaultScheduleStatus.RUNNING
    return dg.ScheduleDefinition(
        "keys", job=keys_job, cron_schedule=cron, execution_timezone="UTC", default_status=running
    )
