"""Jobs over days that no single partition range can name."""

import dagster as dg

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.orchestration.events import materializations
from platform_assets.orchestration.resources import PlatformResource, SparkResource


@dg.op(description="Take what was delivered and recompute exactly the days it reaches, contiguous or not.")
def refresh_tables(context: dg.OpExecutionContext, platform: PlatformResource, spark: SparkResource) -> None:
    """Refresh all tables and report every published day to Dagster."""
    author = Author(run=context.run_id, why=context.run.tags.get("platform/why", "refresh"))
    with platform.open() as opened:
        result = refresh(opened, lambda: spark.spark_session, author)
    outcomes: list[IngestResult | StepResult] = [*result.ingests, *result.steps]
    for done in outcomes:
        for event in materializations(done.table, done.published, done.seconds):
            context.log_event(event)
    refused = [breach.message for step in result.steps for found in step.held.values() for breach in found]
    refused += [f"{step.table} {day}: {reason}" for step in result.steps for day, reason in step.blocked.items()]
    if refused:
        raise dg.Failure(
            f"{len(refused)} days were not published.\n" + "\n".join(refused[:20]),
            allow_retries=False,
        )


@dg.job(
    name="refresh",
    executor_def=dg.in_process_executor,
    description="Ingest everything pending and recompute exactly the days that are out of date.",
)
def refresh_job() -> None:
    """All tables, in dependency order, in one Spark session."""
    refresh_tables()
