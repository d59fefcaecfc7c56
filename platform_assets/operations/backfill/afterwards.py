"""Compare a backfill with the release, prove it once published, roll it back, cancel it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discarded_on_error
from platform_assets.engine.refresh import fill, planned
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.step.analysis import analysed
from platform_assets.engine.step.stage import Stage
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.lakehouse.reading import resolve
from platform_assets.lakehouse.releases import Release, release
from platform_assets.lakehouse.staging_folders import private_folder, staging
from platform_assets.operations.backfill.apply import as_published
from platform_assets.operations.backfill.explain import explain, scope_in
from platform_assets.operations.backfill.files import PlanFileError
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError, publication_by
from platform_assets.operations.plan_record import (
    OVER,
    ROLLBACK_OF,
    STAGE,
    BackfillRecord,
    forget_pause,
    read_record,
    write_record,
)
from platform_assets.operations.rollback import Rollback, rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.compare import Files, TableBeside, table_beside
from platform_assets.operations.stages.stages import drop_stage
from platform_assets.operations.stages.store import opened_stage, stage_names
from platform_assets.operations.verify import TableVerified, Verified, verify
from platform_assets.planning.backfill.days import request_for, sampled_days
from platform_assets.planning.backfill.pace import may_compute
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import Draw, Selection
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord, PublicationRecord, StagedDays
from platform_assets.spark.session.on_demand import SparkOnDemand


def prove(
    platform: Platform,
    spark: SparkOnDemand,
    record: BackfillRecord,
    most: int | None = None,
    progress: OnProgress = no_progress,
) -> tuple[TableVerified, ...]:
    """Recompute published days of a backfill from their original inputs.

    Days that were published again since are named and not verified: they are other work.
    """
    days = _published(platform, record)
    proved: list[TableVerified] = []
    with private_folder(platform.lake) as folder:
        for table, of_table in days.items():
            replaced = _replaced(platform, table, of_table)
            if own := frozenset(of_table.keys() - {day.day for day in replaced}):
                draw = None if most is None else Draw(most, seed=int(record.hash, 16))
                proved += verify(platform, spark, Selection(frozenset({table}), own), folder, progress, draw)
            if replaced:
                proved.append(TableVerified(table, replaced))
    return tuple(proved)


def _replaced(platform: Platform, table: str, published: Mapping[date, DayRecord]) -> tuple[Verified, ...]:
    """Return days replaced since a backfill published them, each with the replacing publication."""
    now = platform.ledger.current_days(table, among=published)
    replaced: list[Verified] = []
    for day, record in sorted(published.items()):
        current = now.get(day)
        if current is None or current.digest != record.digest:
            head = platform.ledger.head(current.publication) if current else None
            by = f", by {head.who} in release {head.release} ({head.kind})" if head else ""
            reason = f"{table} {day} was made another one since{by}"
            replaced.append(Verified(day, "not verifiable", reason, Digest.parse(record.digest)))
    return tuple(replaced)


def note_proof(
    platform: Platform, record: BackfillRecord, proved: Collection[TableVerified], *, is_all: bool = True
) -> BackfillRecord:
    """Record the result of the proof; `is_all` unless a person has to act."""
    different = [f"{one.table} {day.day}" for one in proved for day in one.of("different")]
    equal = sum(len(one.of("equal")) for one in proved)
    unknown = [day.reason for one in proved for day in one.of("not verifiable")]
    what = f"{equal} days computed once more and equal" + (f"; different: {', '.join(different)}" if different else "")
    what += f"; {len(unknown)} cannot be: {unknown[0]}" if unknown else ""
    record = record.with_event(what, kind="proved", proved=is_all, different_days=len(different))
    write_record(platform.lake, record)
    return record


def prove_sample(
    platform: Platform,
    spark: SparkOnDemand,
    record: BackfillRecord,
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[BackfillRecord, tuple[TableVerified, ...]]:
    """Recompute a sample after publication, as a plan asks; if a day differs, the whole plan is rolled back.

    It begins within the plan's hours and then runs to its end: an interrupted proof leaves nothing, and one longer than
    the hours would begin again for ever.

    Returns:
        What became of it, and what was computed once more: nothing of one that was proved and came out equal.

    Raises:
        StoppedError: it may not compute now; it stays published, and the next call proves it.
    """
    asked = record.file.afterwards
    was_equal = record.state == "published" and record.proved and not record.different_days
    if not asked.verify or was_equal:  # asked once more, as by another try of a run, it would take as long again
        return record, ()
    if record.wants_proof and not may_compute(record.file.service, datetime.now(UTC)):
        what = f"its proof waits for its hours, {record.file.service.hours} UTC"
        if record.events and record.events[-1].what != what:
            write_record(platform.lake, record.with_event(what))
        raise StoppedError(
            f"The plan {record.name} is {record.came_to}, and {what}.",
            "Apply it again then: that computes the sample and nothing else.",
        )
    proved = prove(platform, spark, record, asked.verify, progress)
    goes = asked.roll_back_on_failure and any(table.of("different") for table in proved)
    record = note_proof(platform, record, proved, is_all=not goes)
    if goes:
        record, _ = roll_back(platform, record.name, author, progress)
    return record, proved


def roll_back(
    platform: Platform, name: str, author: Author, progress: OnProgress = no_progress, *, cascade: bool = False
) -> tuple[BackfillRecord, Rollback | None]:
    """Return exactly the days of a backfill to their content before it.

    Returns:
        The new record; and the rollback, or None if an earlier process made it and died before recording it.
    """
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        if record.state == "publishing" and (newest := publication_by(platform, record)):
            record = as_published(platform, record, newest)  # its process died before recording that
        before, done = rollback_of(platform, record), None
        if before and record.state == "rolled back":
            raise BackfillError(
                f"The plan {name} is rolled back already, by {before.who} in release {before.release}: {before.why}; "
                "nothing was rolled back.",
                f"`platform-assets status backfills {name}` shows it.",
            )
        _published(platform, record)
        if before:
            release: int | None = before.release
        else:
            chosen = chosen_publications(platform, record.publication, None, None)
            undoing = replace(author, run=_undoing(record))
            done = rollback(platform, chosen, undoing, cascade=cascade, progress=progress)
            release = done.release
        what = f"rolled back in release {release}: {author.why}"
        record = record.with_event(what, author.who, "rolled back", state="rolled back")
        write_record(platform.lake, record)
    return record, done


def cancel(platform: Platform, name: str, author: Author) -> BackfillRecord:
    """Cancel an unpublished backfill and delete its staged days."""
    with plan_lock(platform.lake, name):
        record = read_record(platform.lake, name)
        if record.state in OVER or (record.state == "publishing" and publication_by(platform, record)):
            raise BackfillError(
                f"The plan {name} is {record.state} and cannot be cancelled.",
                f"`platform-assets undo backfill:{name} --reason …` puts its days back, if it was published.",
            )
        if STAGE + name in stage_names(platform.lake):
            drop_stage(platform, STAGE + name)
        forget_pause(platform.lake, name)
        record = record.with_event(f"cancelled: {author.why}", author.who, "cancelled", state="cancelled", done=0)
        write_record(platform.lake, record)
    return record


def rollback_of(platform: Platform, record: BackfillRecord) -> PublicationRecord | None:
    """Return the publication that rolled a backfill back, also if its process died before recording it."""
    platform.settle()
    # One of the same name and content, whose record is gone, may have been published and undone before this one.
    since = -1 if record.release is None else record.release
    undone = [head for head in platform.ledger.heads("roll back") if head.run == _undoing(record)]
    undone = [head for head in undone if head.release > since]
    return max(undone, key=lambda head: head.release, default=None)


def _undoing(record: BackfillRecord) -> str:
    """Return the run named by a backfill's rollback."""
    return f"{ROLLBACK_OF}{record.run}"


def _published(platform: Platform, record: BackfillRecord) -> dict[str, dict[date, DayRecord]]:
    if record.state != "published":
        raise BackfillError(
            f"The plan {record.name} is {record.state}, not published.",
            "`platform-assets status backfills` shows all plans.",
        )
    published = platform.ledger.publication(record.publication)
    if published is None:
        raise BackfillError(
            f"The plan {record.name} was published by {record.publication}, which this lake does not have: it was "
            "restored from an older backup, or the record is of another one.",
            f"Remove {platform.lake.plans_path / record.name}.json to apply the plan again.",
        )
    days: dict[str, dict[date, DayRecord]] = {}
    for day in published.days:
        if day.table in platform.catalogue.names:
            days.setdefault(day.table, {})[day.day] = day
    return days


@dataclass(frozen=True)
class PlanTable(TableBeside):
    """Days of a table before and after a plan.

    Args:
        code: code versions of the days before, and the one after.
    """

    code: tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Comparison:
    """A plan compared with the release.

    Args:
        what: phrase for the side after the change.
        tables: inputs first.
        failed: days that did not pass the gates of their contract, with the reason, by table; they are not compared.
        as_before: days that were not computed because their inputs came out unchanged, by table.
    """

    name: str
    release: int
    what: str
    tables: tuple[PlanTable, ...]
    failed: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    as_before: Mapping[str, tuple[date, ...]] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Return whether all compared days are unchanged."""
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
    """Compute a sample of a plan with the present code, compare it with the release, and delete it."""
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
    """Compare a plan's staged days with their base release, or its published days with the release before."""
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
    """Return the files of each staged day, and its code version, by table."""
    return {
        table: ({day: content.files for day, content in change.days.items()}, change.code_version)
        for table, change in staged.tables.items()
    }


def _beside(
    platform: Platform, before: Release, after: Mapping[str, tuple[Files, str]], most: int
) -> tuple[PlanTable, ...]:
    """Compare files of days with those of a release."""
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
