"""One factory makes every asset: a daily-partitioned table, from its contract."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import cast

import dagster as dg

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.circuits import stopped
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import recompute_step
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.step.analysis import analysed
from platform_assets.engine.user_code import column_sources
from platform_assets.lakehouse.errors import Conflict, OvertakenError
from platform_assets.orchestration.assets.checks import (
    check_specs,
    checks_of_result,
    day_results,
    days_left,
    failures,
    good_day_events,
    good_days,
    published_events,
    run_results,
    what_holds,
    without_judgement,
)
from platform_assets.orchestration.assets.events import (
    asset_key,
    day_metadata,
    describe_table,
    materializations,
    plain,
    shown_owners,
)
from platform_assets.orchestration.assets.pictures import with_charts
from platform_assets.orchestration.instance.events import forget_results, newest_materializations
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.resources import PlatformResource, SparkResource, progress_in_run, warn_of_files
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress, Progress
from platform_assets.quality.findings import Check
from platform_assets.records.history import DayRecord
from platform_assets.settings import Settings
from platform_assets.words import counted, visible

_LEFT_ALONE = (
    "already up to date: nothing was computed. To compute it again, hold Shift while you press Materialize and write "
    "`force: true` in the launchpad, or use `platform-assets refresh TABLE --days DAYS --force`."
)

Event = dg.MaterializeResult[None] | dg.AssetCheckResult

_UP_TO_DATE = "The day is up to date: nothing of it was kept back when it was published."


def daily_partitions(settings: Settings) -> dg.DailyPartitionsDefinition:
    """Return the one partitions definition that all tables share: the calendar, in UTC."""
    last = settings.calendar_last
    end = (last + timedelta(days=1)).isoformat() if last else None
    return dg.DailyPartitionsDefinition(start_date=settings.calendar_first.isoformat(), end_date=end, timezone="UTC")


class TableConfig(dg.Config):
    """How a run computes its days."""

    force: bool = False
    """Compute days that are up to date, and try again what was refused."""

    accept: list[str] = []
    """Checks (volume, reconciliation, rules, settled) whose findings a person has looked at and accepts."""


def build_assets(
    catalogue: Catalogue, settings: Settings, code_versions: Mapping[str, str]
) -> list[dg.AssetsDefinition]:
    """Build an asset per table."""
    partitions = daily_partitions(settings)
    return [_build_asset(catalogue, contract, partitions, code_versions.get(contract.name)) for contract in catalogue]


def _build_asset(
    catalogue: Catalogue, contract: Contract, partitions: dg.PartitionsDefinition, code_version: str | None
) -> dg.AssetsDefinition:
    columns = [dg.TableColumn("event_date", "date", "The day, in UTC.")]
    columns += [
        dg.TableColumn(
            column.name,
            column.type,
            column.description,
            constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=contract.key == (column.name,)),
            tags={"sensitive": ""} if column.sensitive else {},
        )
        for column in contract.columns
    ]

    @dg.asset(
        key=asset_key(contract.name),
        description=describe_table(contract),
        # Dagster opens a graph of one group, and folds up several; the layer is in the key, and among the kinds.
        group_name=catalogue.domain_of(contract.name).name,
        owners=shown_owners(contract.owner),
        kinds={"pyspark", "deltalake", contract.layer},
        tags={"domain": catalogue.domain_of(contract.name).name, **dict.fromkeys(contract.tags, "")},
        deps=[asset_key(read.table) for read in contract.inputs],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        code_version=code_version,
        pool=TABLES_POOL,
        check_specs=check_specs(contract, partitions),
        metadata={
            "dagster/column_schema": dg.TableSchema(columns=columns),
            "dagster/column_lineage": _lineage(catalogue, contract),
            "key": ", ".join(contract.key),
        },
    )
    def table(
        context: dg.AssetExecutionContext,
        config: TableConfig,
        platform: PlatformResource,
        spark: SparkResource,
        progress: dg.ResourceParam[OnProgress],
    ) -> Iterator[Event]:
        days = tuple(date.fromisoformat(key) for key in context.partition_keys)
        backfill = context.run.tags.get("dagster/backfill")
        author = Author(run=context.run_id, why=f"backfill {backfill}" if backfill else "materialized in Dagster")
        with platform.open() as opened, progress_in_run(context, spark.tasks, progress) as on_progress:
            yield from _Run(context, config, opened, spark, on_progress, contract, days, author).events()

    return table


def _lineage(catalogue: Catalogue, contract: Contract) -> dg.TableColumnLineage:
    split = {name: [one.rpartition(".") for one in each] for name, each in column_sources(catalogue, contract).items()}
    deps = {
        column: [dg.TableColumnDep(asset_key(table), name) for table, _, name in sources]
        for column, sources in split.items()
        if sources
    }
    return dg.TableColumnLineage(deps)


@dataclass(frozen=True)
class _Run:
    """A step of a run: a table and its days."""

    context: dg.AssetExecutionContext
    config: TableConfig
    platform: Platform
    spark: SparkResource
    progress: OnProgress
    contract: Contract
    days: tuple[date, ...]
    author: Author

    def events(self) -> Iterator[Event]:
        """Do the work and report it to Dagster.

        Raises:
            RefusedError: days were not published; the others are.
        """
        try:
            done = self._work()
        except Exception as error:
            good = good_days(self.platform, self.contract, self.days)
            overtaken = isinstance(error, Conflict | OvertakenError) and self.contract.source is None
            if not overtaken or good.keys() != set(self.days):
                self._log_good(good)
                raise
            self.context.log.info(f"{self.contract.name}: another process has published all of its days")
            done = StepResult(self.contract.name, up_to_date=frozenset(good))
        self.progress(Progress("recording", f"{self.contract.name} in Dagster"))
        reasons, good = failures(done), dict[date, DayRecord]()
        by_day = checks_of_result(self.platform, self.contract, done)
        held = what_holds(self.platform, self.contract, reasons)
        metadata = with_charts(self.platform, self.contract, day_metadata(done, self.platform.calendar))
        events = materializations(done, metadata)
        for day, event in events.items():
            # What a step that succeeds was asked for, Dagster materializes by itself.
            if reasons or day not in self.days:
                self.context.log_event(event)
        if reasons:
            # What needed nothing too, or a backfill would count it among the days that failed.
            good = good_days(self.platform, self.contract, set(self.days) - reasons.keys() - events.keys())
            self._log_good(good)
        if not reasons:
            for day in done.published.keys() & set(self.days):
                self.context.add_asset_metadata(metadata[day], partition_key=day.isoformat())
            for day in self._left_alone(done):
                self.context.add_asset_metadata({"result": plain(_LEFT_ALONE)}, partition_key=day.isoformat())
            yield dg.MaterializeResult(data_version=dg.DataVersion(self._data_version()))
        asked = {day: checks for day, checks in by_day.items() if day in self.days}
        # The result of a run of one day is that day's, unless it names a range; all others need events of their own.
        its_own = asked if self.context.has_partition_key else {}
        others = {day: checks for day, checks in by_day.items() if day not in its_own}
        for result in day_results(self.context.instance, self.contract, others, held):
            self.context.log_event(result)
        yield from run_results(self.contract, asked, held)
        # What a failed run does not look at would be shown as a check that broke down.
        seen = set(self.days) - good.keys() if reasons else asked
        self._forget(without_judgement(self.contract, seen, asked), asked)
        if reasons:
            title = f"{self.contract.name}: {len(reasons):,} of {counted(len(self.days), 'day')} not published."
            stops = {hold.reason for hold in stopped(self.platform, [self.contract.name]).values()}
            raise days_left(title, {self.contract.name: reasons}, held.values(), stops)

    def _work(self) -> IngestResult | StepResult:
        name, log = self.contract.name, self.context.log
        spark = analysed(self.platform, self._tables(), lambda: self.spark.session(self.progress), self.author.run)
        if self.contract.source is not None:
            taken = ingest(self.platform, spark, self.contract, self.author, self.days, self.progress)
            days = counted(len(taken.published), "day")
            log.info(f"{name}: {counted(len(taken.arrivals), 'arrival')}, {days} with new content")
            warn_of_files(log, taken)
            return taken
        done = recompute_step(
            self.platform,
            spark,
            Step(name, self.days),
            self.author,
            self.progress,
            force=self.config.force,
            accept=[cast("Check", name) for name in self.config.accept],
        )
        if left := self._left_alone(done):
            log.warning(f"{name}: {counted(len(left), 'day')} {_LEFT_ALONE}")
        log.info(
            f"{name}: {counted(len(done.published), 'day')} published, {len(done.up_to_date):,} already up to date, "
            f"{len(done.held):,} held, {len(done.blocked):,} blocked; {len(done.unchanged):,} came out as before"
        )
        for table, read in done.read.items():
            log.info(f"{name}: {counted(read.files, 'file')} of {counted(read.days, 'day')} of {table} read")
        for day, notes in done.notes.items():
            log.warning(visible(f"{name} {day} {'; '.join(notes)}"))
        return done

    def _left_alone(self, done: IngestResult | StepResult) -> list[date]:
        return sorted(done.up_to_date.intersection(self.days)) if isinstance(done, StepResult) else []

    def _tables(self) -> list[str]:
        """Return all tables of the run, so that a mistake in the last one is found before the first is loaded."""
        asked = self.context.run.asset_selection
        names = self.platform.catalogue.names
        return [name for name in names if asked is None or asset_key(name) in asked]

    def _log_good(self, days: Mapping[date, DayRecord]) -> None:
        for event in good_day_events(self.contract, days):
            self.context.log_event(event)
        newest = newest_materializations(self.context.instance, asset_key(self.contract.name), days)
        for day in sorted(days):
            for judged in published_events(self.contract, days[day], _UP_TO_DATE, newest.get(day.isoformat())):
                self.context.log_event(judged)

    def _forget(self, unjudged: Mapping[Check, list[date]], asked: Collection[date]) -> None:
        for name, days in unjudged.items():
            # Where a check says nothing of any day, its result for the whole run says nothing either.
            of_run = [None] if days and set(days).issuperset(asked) else []
            key = dg.AssetCheckKey(asset_key(self.contract.name), name)
            forget_results(self.context.instance, self.context.run_id, key, [*map(str, days), *of_run])

    def _data_version(self) -> str:
        """Return the digest of a single day; of a range, which Dagster gives one version, a hash of its digests."""
        current = self.platform.ledger.current_days(self.contract.name)
        digests = {day: current[day].digest for day in self.days if day in current}
        if len(digests) == 1:
            return next(iter(digests.values()))
        return hashlib.sha256("|".join(f"{day}={digests[day]}" for day in sorted(digests)).encode()).hexdigest()[:32]
