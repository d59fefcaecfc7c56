"""A plan beside what readers see: some of its days, computed by the code that is here, and never published."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import islice

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discarded_on_error
from platform_assets.engine.refresh import fill, planned
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.step.analysis import analysed
from platform_assets.engine.step.stage import Stage
from platform_assets.lakehouse.reading import resolve
from platform_assets.lakehouse.releases import Release, release
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.operations.backfill.explain import explain, scope_in
from platform_assets.operations.backfill.files import PlanFileError
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.compare import Files, TableBeside, table_beside
from platform_assets.operations.stages.store import opened_stage, stage_names
from platform_assets.planning.backfill.days import request_for, sampled_days
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.history import StagedDays
from platform_assets.spark.session.on_demand import SparkOnDemand


@dataclass(frozen=True)
class PlanTable(TableBeside):
    """Days of a table before and after a plan.

    Args:
        code: versions that made the days before, and the one that made them after.
    """

    code: tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Comparison:
    """A plan beside what readers see.

    Args:
        what: is after, as a phrase.
        tables: inputs first.
        failed: days that did not pass the gates of their contract, with the reason, by table: there is nothing to
            compare them with.
        as_before: days that were not computed, because nothing that they read came out differently, by table.
    """

    name: str
    release: int
    what: str
    tables: tuple[PlanTable, ...]
    failed: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    as_before: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Return whether all that was compared is as before."""
        return not self.failed and all(table.is_equal for table in self.tables)


def compare_plan(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    most_days: int,
    most_examples: int,
    only: Collection[date] | None = None,
    progress: OnProgress = no_progress,
) -> Comparison:
    """Compute a sample of a plan with the code that is here, lay it beside the release, and delete it again."""
    found = explain(platform, file)
    chosen = [day for day in found.days if only is None or day in only]
    if not chosen:
        raise PlanFileError(f"The plan {file.name} names none of these days.", "Name days of the plan, or none.")
    sample = list(islice(chosen, most_days if only is None else None))
    by_table = sampled_days(found.plan, sample, file.tables, platform.catalogue, platform.calendar)
    everywhere = frozenset[date]().union(*by_table.values())  # protected or not: nothing of it is published
    request = request_for(file, by_table, scope_in(platform, file), everywhere)
    if not by_table:
        return Comparison(file.name, found.release, "nothing, since it computes none of these days", ())
    platform.sync()
    with staging(platform.lake) as keep:
        stage = Stage(platform, author, keep=lambda stage, publishing: keep(stage.folders), is_private=True)
        refuse_what_tables_cannot_take(stage.snapshot, request)
        with discarded_on_error("What was staged", stage.discard):
            plan = planned(stage, request, None)
            spark = analysed(platform, [step.table for step in plan.steps], spark)
            steps, struck = fill(stage, plan, spark, progress, request)
            tables = _beside(platform, stage.release, _of_stage(stage.staged), most_examples)
        stage.discard()
    failed = {done.table: done.not_published for done in steps if done.not_published}
    return Comparison(file.name, stage.release.number, "the code that is here", tables, failed, struck)


def compare_record(platform: Platform, record: BackfillRecord, most_examples: int) -> Comparison:
    """Lay what a plan has staged beside the release under its stage, or what it published beside the release before."""
    name = STAGE + record.name
    if name in stage_names(platform.lake):
        stage = opened_stage(platform, name)
        tables = _beside(platform, release(platform.lake, stage.release), _of_stage(stage.staged), most_examples)
        return Comparison(record.name, stage.release, "what it has staged", tables)
    published = platform.ledger.publication(record.publication) if record.publication else None
    if published is None:
        raise PlanFileError(
            f"The plan {record.name} is {record.state} and has nothing staged.",
            "Name its file, and some of its days are computed to be compared.",
        )
    before, after = resolve(platform.lake, published.release - 1), resolve(platform.lake, published.release)
    shown: dict[str, tuple[Files, str]] = {}
    for table in {day.table for day in published.days}:
        days = {day.day: day.code_version for day in published.days if day.table == table}
        files = files_at(platform.lake, table, after.versions.get(table))
        shown[table] = {day: files.get(day, ()) for day in days}, next(iter(days.values()))
    tables = _beside(platform, before, shown, most_examples)
    return Comparison(record.name, before.number, f"release {after.number}, which it published", tables)


def _of_stage(staged: StagedDays) -> dict[str, tuple[Files, str]]:
    """Return the files of each staged day, and the code that made them, by table."""
    return {
        table: ({day: content.files for day, content in change.days.items()}, change.code_version)
        for table, change in staged.tables.items()
    }


def _beside(
    platform: Platform, before: Release, after: Mapping[str, tuple[Files, str]], most: int
) -> tuple[PlanTable, ...]:
    """Lay files of days beside those of a release."""
    tables = []
    for contract in platform.catalogue:
        files, code = after.get(contract.name, ({}, ""))
        if files:
            live = files_at(platform.lake, contract.name, before.versions.get(contract.name))
            records = platform.ledger.current_days(contract.name, at=before.number, among=list(files))
            old = tuple(sorted({record.code_version for record in records.values()}))
            beside = table_beside(platform, contract, ({day: live.get(day, ()) for day in files}, files), most)
            tables.append(PlanTable(**vars(beside), code=(old, code)))
    return tuple(tables)
