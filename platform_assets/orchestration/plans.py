"""Run reviewed plan files in Dagster, as `platform-assets backfill` does: the jobs `plan_explain` and `plan_apply`.

The launchpad takes the name of a file in the folder of plans and no content: only a reviewed plan, approved by its
hash, is applied. The whole rollout is one step: the number of its shares is known only when it runs, and Dagster's
dynamic steps continue after another one has failed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import dagster as dg
from pydantic import Field

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.errors import DamagedStageError, LockTimeoutError, StageError
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.operations.backfill.afterwards import prove_sample, rollback_of
from platform_assets.operations.backfill.apply import apply, stage_rollout
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import plan_at, plan_in, read_plan
from platform_assets.operations.backfill.report import record_report
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError, sitting_over
from platform_assets.operations.backfill.standing import backfill_report, facts, standing, standing_of
from platform_assets.operations.plan_record import BackfillRecord, RecordError, find_record, read_record, write_record
from platform_assets.orchestration.assets.checks import published_events
from platform_assets.orchestration.assets.events import Metadata, asset_key, day_event, listed, markdown
from platform_assets.orchestration.assets.publications import PROVE, PUBLISH, current_days, published_metadata
from platform_assets.orchestration.instance.events import RefusedError, errors_without_trace, newest_materializations
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.jobs import log_freshness
from platform_assets.orchestration.resources import PlatformResource, SparkResource, progress_in_run
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, Progress
from platform_assets.report import markdown as report_lines
from platform_assets.words import counted, visible

PLAN_TAG = "platform/plan"
"""Of a run: the plan that it explains or applies."""
HASH_TAG = "platform/plan_hash"
"""Of a run: what the plan comes to, as it is approved."""

_GO_ON = (
    "To apply it again here, re-execute this run or launch `plan_apply` with the same plan; staged days are not "
    "computed again."
)
_MOST_DAYS = 200
"""Days that the page of a run names one by one."""
_AFTER = {"after": dg.In(dg.Nothing)}


class PlanConfig(dg.Config):
    """Name of the plan."""

    plan: str = Field(description="A file in the folder of plans (PLATFORM_PLANS), with or without its ending.")


class ApplyConfig(PlanConfig):
    """Name of the plan, and who applies it."""

    by: str = Field(default="", description="Who applies it, for its record; Dagster's own user by default.")


def place_of(platform: Platform, config: PlanConfig) -> Path:
    """Return the file of the plan named at the launch."""
    return plan_in(platform.settings.plans, config.plan)


def named_plan(platform: Platform, config: PlanConfig) -> PlanFile:
    """Read the plan named at the launch; an error names each mistake with its line and field."""
    with errors_without_trace(of_own_code=True):
        return read_plan(place_of(platform, config))


@contextmanager
def launched_plan(platform: Platform, config: PlanConfig) -> Iterator[PlanFile]:
    """Read the plan and check that it can be applied: a field that contradicts the tables is named with its line."""
    with errors_without_trace(of_own_code=True), plan_at(place_of(platform, config)) as file:
        yield file


def author_of(context: dg.OpExecutionContext, config: ApplyConfig, file: PlanFile) -> Author:
    """Return who applies a plan, by which run."""
    author = Author(run=context.run_id, why=file.reason)
    return replace(author, who=config.by.strip()) if config.by.strip() else author


def tag(context: dg.OpExecutionContext, name: str, hash: str) -> None:
    """Tag the run with its plan."""
    context.instance.add_run_tags(context.run_id, {PLAN_TAG: name, HASH_TAG: hash})


def published_before(context: dg.OpExecutionContext, platform: Platform, file: PlanFile) -> BackfillRecord | None:
    """Return the record of a plan if an earlier try of this run published it.

    The record then names this run, too, which shows the days.
    """
    parent = context.run.parent_run_id
    if parent is None:
        return None
    with plan_lock(platform.lake, file.name):
        record = find_record(platform.lake, file.name)
        if record is None or record.state != "published" or parent not in record.runs:
            return None
        record = record.worked_on_by(context.run_id)
        write_record(platform.lake, record)
        return record


@contextmanager
def refused_with_evidence(shown: Metadata, said: Sequence[str] = ()) -> Iterator[None]:
    """Fail the step of a plan that cannot begin or stopped, with its message and the evidence.

    Raises:
        RefusedError: in place of a `BackfillError`, if another process works on it, or if its stage or its record is
            damaged; a trace would hide the message.
    """
    try:
        yield
    except (BackfillError, DamagedStageError, LockTimeoutError, RecordError, StageError) as error:
        evidence = {"evidence": listed(error.lines)} | gates(said)
        description = f"{error}\n  {_GO_ON}" if isinstance(error, StoppedError) else str(error)
        raise RefusedError(description, shown | evidence) from None


def gates(said: Sequence[str]) -> Metadata:
    """List the results of the gates."""
    return {"gates": listed(said)} if said else {}


def keep_and_log(context: dg.OpExecutionContext, said: list[str]) -> Callable[[str], None]:
    """Return a function that collects the gates' sentences for the page, and logs them at once."""

    def take(sentence: str) -> None:
        said.append(sentence)
        context.log.info(visible(sentence))

    return take


def page_of(platform: Platform, record: BackfillRecord) -> Metadata:
    """Show the record of a plan on the page of a run."""
    return {"record": markdown("\n".join(report_lines(record_report(platform, record, _MOST_DAYS).parts)))}


def show_published(
    context: dg.OpExecutionContext, platform: Platform, publication: str, by: str, progress: OnProgress
) -> None:
    """Show the days of a publication that this run made, and their checks, passed or warned."""
    head = platform.ledger.publication(publication)
    assert head is not None, publication
    for _, contract, records in current_days(platform, head):
        if not records:
            continue
        progress(Progress("recording", f"{contract.name} in Dagster"))
        metadata = published_metadata(platform, contract, records, head, {})
        for record in records:
            context.log_event(day_event(contract.name, record.day, record.digest, metadata[record.day]))
        newest = newest_materializations(context.instance, asset_key(contract.name), metadata)
        for record in records:
            judged = f"Kept nothing of the day back when it was published, by {by}."
            for shown in published_events(contract, record, judged, newest.get(record.day.isoformat())):
                context.log_event(cast("Any", shown))  # taken, as in assets, though it is not declared so


@dg.op(name="explain", description="Explain a plan; nothing is computed or changed.")
def _explain(context: dg.OpExecutionContext, config: PlanConfig, platform: PlatformResource) -> None:
    with platform.open() as opened, launched_plan(opened, config) as file:
        backfill = explain(opened, file)
    context.add_output_metadata(_explained(context, backfill))
    for obstacle in backfill.blocking:
        context.log.warning(visible(f"obstacle: {obstacle.sentence} {obstacle.todo}"))


@dg.op(
    name="begin",
    description="Explain the plan and begin it, or refuse it: something is in the way, or an approval is missing.",
    pool=TABLES_POOL,
)
def _begin(
    context: dg.OpExecutionContext, config: ApplyConfig, platform: PlatformResource, spark: SparkResource
) -> None:
    with platform.open() as opened, launched_plan(opened, config) as file:
        record = published_before(context, opened, file)
        if record is None:
            explained = _explained(context, explain(opened, file))
            author, place = author_of(context, config, file), place_of(opened, config)
            with (
                refused_with_evidence(explained),
                sitting_over(opened, lambda: spark.spark_session, file, author, place=place) as sitting,
            ):
                record = sitting.record
            context.add_output_metadata(explained)
    tag(context, record.name, record.hash)
    context.log.info(visible(f"{record.name}: {standing(record)}"))


@dg.op(
    name="stage",
    description="Compute the plan step by step in a private stage, and judge each step by the plan's gates.",
    pool=TABLES_POOL,
    ins=_AFTER,
)
def _stage(
    context: dg.OpExecutionContext,
    config: ApplyConfig,
    platform: PlatformResource,
    spark: SparkResource,
    progress: dg.ResourceParam[OnProgress],
) -> None:
    said: list[str] = []
    with platform.open() as opened, progress_in_run(context, spark.tasks, progress) as on_progress:
        file = named_plan(opened, config)
        if published_before(context, opened, file):
            return

        def tell(now: Progress) -> None:
            on_progress(now)
            if now.table and now.finished:
                so_far = standing_of(opened, sitting.record)
                context.log.info(visible(f"{file.name}: {standing(sitting.record, so_far)}"))

        author, place = author_of(context, config, file), place_of(opened, config)
        with (
            refused_with_evidence({}, said),
            sitting_over(
                opened, lambda: spark.session(on_progress), file, author, tell, keep_and_log(context, said), place
            ) as sitting,
        ):
            stage_rollout(sitting)
        context.log.info(visible(f"{file.name}: {standing(sitting.record)}"))
    context.add_output_metadata(gates(said))


@dg.op(
    name=PUBLISH, description="Publish all of the plan in one release, and show its days.", pool=TABLES_POOL, ins=_AFTER
)
def _publish(
    context: dg.OpExecutionContext,
    config: ApplyConfig,
    platform: PlatformResource,
    spark: SparkResource,
    progress: dg.ResourceParam[OnProgress],
) -> None:
    said: list[str] = []
    with platform.open() as opened, progress_in_run(context, spark.tasks, progress) as on_progress:
        file = named_plan(opened, config)
        record = published_before(context, opened, file)
        if record is None:
            author, place = author_of(context, config, file), place_of(opened, config)
            with refused_with_evidence({}, said):
                # Not its end alone: if the file was changed since, it is another plan, and is explained and staged.
                record = apply(
                    opened,
                    lambda: spark.session(on_progress),
                    file,
                    author,
                    on_progress,
                    keep_and_log(context, said),
                    place,
                )
        show_published(context, opened, record.publication, f"the plan {record.name}", on_progress)
        log_freshness(context, opened)
        context.add_output_metadata(page_of(opened, record))


@dg.op(
    name=PROVE,
    description="Compute a sample of the published days once more, and roll all of it back if the plan says so.",
    pool=TABLES_POOL,
    ins=_AFTER,
)
def _prove(
    context: dg.OpExecutionContext,
    config: ApplyConfig,
    platform: PlatformResource,
    spark: SparkResource,
    progress: dg.ResourceParam[OnProgress],
) -> None:
    with platform.open() as opened, progress_in_run(context, spark.tasks, progress) as on_progress:
        file = named_plan(opened, config)
        record = read_record(opened.lake, file.name)
        author = author_of(context, config, file)
        with refused_with_evidence({}):
            if record.proved:
                context.log.info(
                    visible(f"{record.name} was proved before; `admin verify` computes all of it once more.")
                )
            record, proved = prove_sample(opened, lambda: spark.session(on_progress), record, author, on_progress)
        if undone := rollback_of(opened, record):
            show_published(context, opened, undone.publication, f"the rollback of the plan {record.name}", on_progress)
        page = page_of(opened, record)
    context.log.info(visible(f"{record.name}: {record.events[-1].what}"))
    if different := [f"{table.table} {day.day}" for table in proved for day in table.of("different")]:
        is_undone = record.state == "rolled back"
        todo = f"`platform-assets undo backfill:{record.name} --reason … --by …` puts all of it back."
        raise RefusedError(
            f"Days that were computed once more came out differently: {', '.join(different)}.\n  "
            f"{'All of it is rolled back.' if is_undone else todo}",
            page,
        )
    context.add_output_metadata(page)


def _explained(context: dg.OpExecutionContext, backfill: Backfill) -> dict[str, dg.MetadataValue]:
    """Return the whole page, and log what fits into a line: a page opens only after a click."""
    days = counted(backfill.plan.days, "day")
    context.log.info(visible(f"{backfill.file.name} {backfill.hash}: {days} of tables. {' '.join(facts(backfill))}"))
    tag(context, backfill.file.name, backfill.hash)
    return {"plan": markdown("\n".join(report_lines(backfill_report(backfill).parts)))}


@dg.config_mapping
def _of_explain(config: PlanConfig) -> dg.RunConfig:
    return dg.RunConfig(ops={"explain": config})


@dg.config_mapping
def _of_apply(config: ApplyConfig) -> dg.RunConfig:
    return dg.RunConfig(ops=dict.fromkeys(("begin", "stage", PUBLISH, PROVE), config))


@dg.job(
    name="plan_explain",
    config=_of_explain,
    executor_def=dg.in_process_executor,
    description="Shows what a plan does: days and why, order, price, obstacles, hash. Changes nothing.",
)
def plan_explain_job() -> None:
    """Explain without Spark, and without a place in a pool."""
    _explain()


@dg.job(
    name="plan_apply",
    config=_of_apply,
    executor_def=dg.in_process_executor,
    description="Stages a plan step by step behind its gates, publishes it in one release, and proves a sample. "
    "Launched again, it continues.",
)
def plan_apply_job() -> None:
    """Apply in one Spark session; if a step fails, the next run continues."""
    _prove(after=_publish(after=_stage(after=_begin())))
