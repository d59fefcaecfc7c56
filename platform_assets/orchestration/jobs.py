"""Jobs over days that no single partition range can name."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, cast

import dagster as dg
from pydantic import Field

from platform_assets.contracts import Contract
from platform_assets.engine.late.approvals import approve
from platform_assets.engine.late.queue import deep_restatements, late_queue
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import refresh
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.operations.lineage.day_history import ended_rollbacks
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.orchestration.assets.checks import (
    ByDay,
    checks_of_result,
    day_results,
    days_left,
    failures,
    what_holds,
)
from platform_assets.orchestration.assets.events import day_metadata, materializations
from platform_assets.orchestration.assets.pictures import with_charts
from platform_assets.orchestration.assets.publications import come_since
from platform_assets.orchestration.assets.table_checks import freshness_events
from platform_assets.orchestration.instance.events import plan_days
from platform_assets.orchestration.instance.launcher import REFRESH_POOL
from platform_assets.orchestration.resources import PlatformResource, SparkResource, progress_in_run, warn_of_files
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON
from platform_assets.progress import OnProgress, Progress
from platform_assets.words import counted, visible

_DEEP = "deep restatement"
"""Author of automatic approvals of late rows."""


class RefreshConfig(dg.Config):
    """Scope of a refresh."""

    until: str = Field(default="", description="Newest arrival date to take, as YYYY-MM-DD; everything by default.")
    by_person: bool = Field(
        default=False, description="Also recompute days that are stale only through code or configuration."
    )
    deep_restatement: bool = Field(
        default=False, description="First take the late rows that contracts leave to the deep restatement."
    )


@dg.op(
    description="Ingest what was delivered and recompute exactly the days that it reaches, contiguous or not.",
    pool=REFRESH_POOL,
)
def refresh_tables(
    context: dg.OpExecutionContext,
    config: RefreshConfig,
    platform: PlatformResource,
    spark: SparkResource,
    progress: dg.ResourceParam[OnProgress],
) -> None:
    """Refresh all tables and report every published day to Dagster."""
    until = date.fromisoformat(config.until) if config.until else None
    author = Author(run=context.run_id, why=context.run.tags.get("platform/why", "refresh"))
    with platform.open() as opened, progress_in_run(context, spark.tasks, progress) as on_progress:
        for selection in deep_restatements(opened, late_queue(opened)) if config.deep_restatement else ():
            deep = replace(author, who=_DEEP)
            for done in approve(
                opened, lambda: spark.session(on_progress), selection, deep, on_progress, by_person=False
            ):
                rows = sum(arrival.taken for arrival in done.arrivals)
                changed = counted(len(done.published), "day")
                context.log.info(f"{done.table}: {counted(rows, 'late row')} taken, {changed} changed")
        held: list[HeldDay] = []
        stood = opened.ledger.holds()
        result = refresh(
            opened,
            lambda: spark.session(on_progress),
            author,
            progress=on_progress,
            until=until,
            report=lambda done: held.extend(_report(context, opened, done, on_progress)),
            request=BY_PERSON if config.by_person else AUTOMATIC,
        )
        for table, days in result.struck.items():
            context.log.info(f"{table}: {counted(len(days), 'day')} struck: {result.why_struck}")
        for rollback in ended_rollbacks(opened, stood):
            (context.log.info if rollback.is_done else context.log.warning)(visible(rollback.sentence))
        if result.by_people:
            context.log.warning(describe_by_people(result.by_people))
        for sentence in result.stopped:
            context.log.warning(visible(f"nothing is published: {sentence}"))
        log_freshness(context, opened)
    left = {done.table: failures(done) for done in result.steps}
    if count := sum(map(len, left.values())):
        plan_days(context, left)
        raise days_left(f"Days not published: {count:,}.", left, held, result.stopped)


def describe_by_people(tables: Collection[str]) -> str:
    """Name tables that no run touches because their contract, or an input's, has other columns or keys."""
    return f"left alone since a contract changed, as `platform-assets status stale` says: {', '.join(tables)}"


def _report(
    context: dg.OpExecutionContext, platform: Platform, done: IngestResult | StepResult, progress: OnProgress
) -> tuple[HeldDay, ...]:
    """Report the days of one table, first the materializations, then their checks; return the holds."""
    if isinstance(done, IngestResult):
        warn_of_files(context.log, done)
    progress(Progress("recording", f"{done.table} in Dagster"))
    contract = platform.catalogue[done.table]
    metadata = with_charts(platform, contract, day_metadata(done, platform.calendar))
    for event in materializations(done, metadata).values():
        context.log_event(event)
    for event in come_since(context.instance, platform, contract) if contract.source else ():
        if date.fromisoformat(str(event.partition)) not in metadata:
            context.log_event(event)
    held = what_holds(platform, contract, failures(done))
    log_checks(context, contract, checks_of_result(platform, contract, done), held)
    return tuple(held.values())


def log_checks(context: dg.OpExecutionContext, contract: Contract, by_day: ByDay, held: Mapping[date, HeldDay]) -> None:
    """Log check results for days of a table, for a job without assets."""
    for result in day_results(context.instance, contract, by_day, held):
        context.log_event(cast("Any", result))  # takes them, as in assets, though it is not declared so


def log_freshness(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Log whether a table has overdue or held days, and the state of its circuit."""
    for fresh in freshness_events(context.instance, platform):
        context.log_event(cast("Any", fresh))


@dg.job(
    name="refresh",
    executor_def=dg.in_process_executor,
    description="Ingest everything pending and recompute exactly the days that are stale.",
)
def refresh_job() -> None:
    """Refresh all tables, in dependency order, in one Spark session."""
    refresh_tables()


tables_job = dg.define_asset_job(
    "tables",
    selection=dg.AssetSelection.all(),
    description="All tables, for days that a person chooses; what `refresh` does by itself needs no choosing.",
)
"""It also connects the sensor of late data to every table in Dagster, which wants jobs that name them."""
