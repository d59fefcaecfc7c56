"""A plan beside what readers see: some of its days, computed by the code that is here, and never published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice

from platform_assets.contracts.table import amounts
from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.reading import resolve
from platform_assets.operations.backfill.explain import explain, scope_in
from platform_assets.operations.backfill.files import PlanFileError
from platform_assets.operations.plan_record import STAGE, BackfillRecord, comparison_stage
from platform_assets.operations.stages.compare import ColumnBeside, Example, Files, StagedDay, columns_beside, compared
from platform_assets.operations.stages.stages import comparison, refresh_stage
from platform_assets.operations.stages.store import opened_stage, stage_basis, stage_names
from platform_assets.planning.backfill.days import request_for, sampled_days
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, no_progress
from platform_assets.spark.session.on_demand import SparkOnDemand


@dataclass(frozen=True)
class TableBeside:
    """Days of a table before and after.

    Args:
        code: versions that made the days before, and the one that made them after.
        days: compared, oldest first.
    """

    table: str
    code: tuple[tuple[str, ...], str]
    days: tuple[StagedDay, ...]
    columns: tuple[ColumnBeside, ...]
    examples: tuple[Example, ...]

    @property
    def is_equal(self) -> bool:
        """Whether no key and no value differs."""
        return all(day.is_equal for day in self.days) and not any(column.changed for column in self.columns)


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
    tables: tuple[TableBeside, ...]
    failed: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    as_before: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether all that was compared is as before."""
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
    """Compute a sample of a plan with the code that is here, lay it beside the release, and delete it again.

    Args:
        most_days: of those that it names, in the order of its rollout.
        most_examples: of each way in which keys of a table differ.
        only: days in place of the first.

    Raises:
        PlanFileError: it cannot be explained, or names none of the days.
    """
    found = explain(platform, file)
    chosen = [day for day in found.days if only is None or day in only]
    if not chosen:
        raise PlanFileError(f"The plan {file.name} names none of these days.", "Name days of the plan, or none.")
    sample = list(islice(chosen, most_days if only is None else None))
    by_table = sampled_days(found.plan, sample, file.tables, platform.catalogue, platform.calendar)
    everywhere = frozenset[date]().union(*by_table.values())  # protected or not: nothing of it is published
    request = request_for(file, by_table, scope_in(platform, file), everywhere)
    name, why = comparison_stage(file.name)
    author = replace(author, why=why)
    if not by_table:
        return Comparison(file.name, found.release, "nothing, since it computes none of these days", ())
    with comparison(platform, file.name):
        result = refresh_stage(platform, spark, author, name, progress, request)
        failed = {done.table: done.not_published for done in result.steps if done.not_published}
        tables = tuple(_staged_beside(platform, name, most_examples))
    return Comparison(file.name, found.release, "the code that is here", tables, failed, result.struck)


def compare_record(platform: Platform, record: BackfillRecord, most_examples: int) -> Comparison:
    """Lay what a plan has staged beside the release under its stage, or what it published beside the release before.

    Raises:
        PlanFileError: it has staged nothing.
        BeyondWindowError: the releases are no longer kept.
    """
    name = STAGE + record.name
    if name in stage_names(platform.lake):
        stage = opened_stage(platform, name)
        return Comparison(
            record.name, stage.release, "what it has staged", tuple(_staged_beside(platform, name, most_examples))
        )
    published = platform.ledger.publication(record.publication) if record.publication else None
    if published is None:
        raise PlanFileError(
            f"The plan {record.name} is {record.state} and has nothing staged.",
            "Name its file, and some of its days are computed to be compared.",
        )
    before, after = resolve(platform.lake, published.release - 1), resolve(platform.lake, published.release)
    days = {
        contract.name: [day.day for day in published.days if day.table == contract.name]
        for contract in platform.catalogue
    }
    tables = []
    for table, of_table in days.items():
        if of_table:
            sides = [
                {day: files.get(day, ()) for day in of_table}
                for files in (files_at(platform.lake, table, one.versions.get(table)) for one in (before, after))
            ]
            old = {
                d.code_version for d in platform.ledger.current_days(table, at=before.number, among=of_table).values()
            }
            new = next(day.code_version for day in published.days if day.table == table)
            tables.append(_beside(platform, table, (sides[0], sides[1]), (tuple(sorted(old)), new), most_examples))
    return Comparison(record.name, before.number, f"release {after.number}, which it published", tuple(tables))


def _staged_beside(platform: Platform, name: str, most_examples: int) -> Iterator[TableBeside]:
    stage = opened_stage(platform, name)
    basis = stage_basis(platform, stage)
    for contract in platform.catalogue:
        change = stage.staged.tables.get(contract.name)
        if change is None or not change.days:
            continue
        live = files_at(platform.lake, contract.name, basis.version(contract.name))
        sides = ({day: live.get(day, ()) for day in change.days}, {d: c.files for d, c in change.days.items()})
        records = platform.ledger.current_days(contract.name, at=stage.release, among=list(change.days))
        old = tuple(sorted({record.code_version for record in records.values()}))
        yield _beside(platform, contract.name, sides, (old, change.code_version), most_examples)


def _beside(
    platform: Platform, table: str, sides: tuple[Files, Files], code: tuple[tuple[str, ...], str], most: int
) -> TableBeside:
    contract = platform.catalogue[table]
    summed = amounts(contract)
    days = tuple(
        compared(platform.lake, table, day, contract.row_key, summed, (sides[0][day], sides[1][day]))
        for day in sorted(sides[0])
    )
    columns, examples = columns_beside(platform.lake, contract, sides, platform.masking, most)
    return TableBeside(table, code, days, columns, examples)
