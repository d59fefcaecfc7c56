"""One factory makes every asset: a daily-partitioned table, from its contract."""

import hashlib
from collections.abc import Mapping
from datetime import date, timedelta

import dagster as dg

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.recompute import recompute_step
from platform_assets.lakehouse.manifest import DayContent
from platform_assets.orchestration.events import (
    asset_key,
    day_metadata,
    materializations,
)
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.planning.steps import Step
from platform_assets.settings import Settings


def daily_partitions(settings: Settings) -> dg.DailyPartitionsDefinition:
    """The one partitions definition that all tables share: the calendar, in UTC."""
    last = settings.calendar_last
    end = (last + timedelta(days=1)).isoformat() if last else None
    return dg.DailyPartitionsDefinition(start_date=settings.calendar_first.isoformat(), end_date=end, timezone="UTC")


def build_assets(
    catalogue: Catalogue, settings: Settings, code_versions: Mapping[str, str]
) -> list[dg.AssetsDefinition]:
    """An asset per table."""
    partitions = daily_partitions(settings)
    return [_build_asset(contract, partitions, code_versions.get(contract.name)) for contract in catalogue]


def _build_asset(
    contract: Contract, partitions: dg.PartitionsDefinition, code_version: str | None
) -> dg.AssetsDefinition:
    columns = [dg.TableColumn("event_date", "date", "The day, in UTC.")]
    columns += [dg.TableColumn(column.name, column.type, column.description) for column in contract.columns]

    @dg.asset(
        key=asset_key(contract.name),
        description=contract.description,
        group_name=contract.layer,
        owners=[contract.owner],
        kinds={"pyspark", "deltalake"},
        deps=[asset_key(read.table) for read in contract.inputs],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        code_version=code_version,
        metadata={"dagster/column_schema": dg.TableSchema(columns=columns)},
    )
    def table(
        context: dg.AssetExecutionContext,
        platform: PlatformResource,
        spark: SparkResource,
    ) -> dg.MaterializeResult[None]:
        days = tuple(date.fromisoformat(key) for key in context.partition_keys)
        author = Author(run=context.run_id, why=_why(context))
        with platform.open() as opened:
            return _run(context, opened, spark, contract, days, author)

    return table


def _why(context: dg.AssetExecutionContext) -> str:
    backfill = context.run.tags.get("dagster/backfill")
    return f"backfill {backfill}" if backfill else "materialized in Dagster"


def _run(
    context: dg.AssetExecutionContext,
    platform: Platform,
    spark: SparkResource,
    contract: Contract,
    days: tuple[date, ...],
    author: Author,
) -> dg.MaterializeResult[None]:
    problems: list[str] = []
    if contract.source is not None:
        taken = ingest(platform, lambda: spark.spark_session, contract, author, days)
        published, seconds = taken.published, taken.seconds
        context.log.info(f"{contract.name}: {len(taken.arrivals)} arrivals, {len(published)} days with new content")
        for problem in (*taken.problems, *taken.growing):
            context.log.warning(f"{problem.path} {problem.message}")
        problems += [f"{day}: nothing was delivered and the day is not declared closed" for day in taken.missing]
        failed = set(taken.missing)
    else:
        result = recompute_step(platform, lambda: spark.spark_session, Step(contract.name, days), author)
        published, seconds = result.published, result.seconds
        problems += [breach.message for found in result.held.values() for breach in found]
        problems += [f"{day}: {reason}" for day, reason in result.blocked.items()]
        failed = set(result.held) | set(result.blocked)
    current = platform.ledger.current_days(contract.name)
    contents = {day: published[day] for day in days if day in published}
    others = {day: content for day, content in published.items() if day not in days}
    for event in materializations(contract.name, others, seconds):
        context.log_event(event)
    if failed:
        # Only on this path: a step that succeeds materializes all of its partitions by itself.
        for event in materializations(contract.name, contents, seconds):
            context.log_event(event)
        raise dg.Failure(
            f"{contract.name}: {len(failed)} of {len(days)} days were not published.\n" + "\n".join(problems[:20]),
            metadata={"days": dg.MetadataValue.json([str(day) for day in sorted(failed)])},
            allow_retries=False,
        )
    _describe(context, contents, seconds / max(len(published), 1))
    digests = {day: current[day].digest for day in days if day in current}
    return dg.MaterializeResult(data_version=dg.DataVersion(_data_version(digests)))


def _describe(context: dg.AssetExecutionContext, contents: Mapping[date, DayContent], share: float) -> None:
    for day, content in contents.items():
        context.add_asset_metadata(day_metadata(content, share), partition_key=day.isoformat())


def _data_version(digests: Mapping[date, str]) -> str:
    """The digest of a single day; of a range, which Dagster gives one version, a hash of its days' digests."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256("|".join(f"{day}={digests[day]}" for day in sorted(digests)).encode()).hexdigest()[:32]
