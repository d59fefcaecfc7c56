"""Verify: recompute published days from their recorded input versions, and compare.

Two things are compared with the recorded digest of a day: the rows in its files, and the rows that today's code
computes from the recorded inputs. Nothing is published; readers and daily runs notice nothing.

Admit tables to Sail by computing their days with both engines, and find what differs between it and Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.admissions import admit, software_compared, take_off, why_no_sail
from platform_assets.engine.day_contents import Files, staged_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.schema_changes import changes_on_disk
from platform_assets.engine.step.compute import sizes_read
from platform_assets.engine.step.inputs import StepInputs
from platform_assets.engine.step.staging import Staged, stage_days
from platform_assets.engine.user_code import UserCode
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import Release, made_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.pins import FileCheck
from platform_assets.operations.stages.compare import TableBeside, table_beside
from platform_assets.planning.configuration import contract_changes
from platform_assets.planning.selection import Draw, Selection, is_mixed, shown_keys
from platform_assets.planning.steps import batches, parts_of
from platform_assets.planning.windows import ranges, ranges_read, which
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.quality.findings import Masking
from platform_assets.records.code_version import Admission, EngineName, Version, shown_commits
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord
from platform_assets.spark.compare.profiles import Profile, profile, rule_aggregates
from platform_assets.spark.compare.reconciliation import figures_by_key
from platform_assets.spark.compare.row_diff import Disagreement, disagreements
from platform_assets.spark.sail.session import columns_for, is_sail, sail_session, session_of
from platform_assets.spark.sail.shown_equal import other_versions, refused_contract, refused_expressions
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import users_code
from platform_assets.spark.tables.reading import no_rows, read_days
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets.spark.tables.staging import tasks_for
from platform_assets.spark.windows import History
from platform_assets.words import counted

Verdict = Literal["equal", "different", "not verifiable"]


@dataclass(frozen=True)
class Verified:
    """Result for one published day.

    Args:
        reason: the difference, or why it cannot be verified; empty if it is equal.
        actual: digest that differs; None if it is equal or was not computed.
        examples: the first differing keys, and their columns, sensitive values masked.
    """

    day: date
    verdict: Verdict
    reason: str
    expected: Digest
    actual: Digest | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableVerified:
    """Verified days of one table, oldest first."""

    table: str
    days: tuple[Verified, ...]

    def of(self, verdict: Verdict) -> tuple[Verified, ...]:
        """Return the days with this result."""
        return tuple(day for day in self.days if day.verdict == verdict)


def verify(
    platform: Platform,
    spark: SparkOnDemand,
    selection: Selection,
    folder: Location,
    progress: OnProgress = no_progress,
    draw: Draw | None = None,
    engine: EngineName = "spark",
) -> tuple[TableVerified, ...]:
    """Verify published days.

    Args:
        folder: a private one, of `lakehouse.staging_folders.private_folder`.
        draw: how many days of each table to sample; all by default.
        engine: engine of the session. A table that differs on it is no longer computed by any engine but Spark.
    """
    platform.sync()
    snapshot = LakeSnapshot.now(platform)
    chosen: list[tuple[Contract, dict[date, DayRecord]]] = []
    for contract in platform.catalogue:
        if selection.has_table(contract.name):
            published = platform.ledger.current_days(contract.name, at=snapshot.number, among=selection.days)
            days = sorted(published) if draw is None else draw.of(published)
            chosen.append((contract, {day: published[day] for day in days}))
    if not any(records for _, records in chosen):
        raise PlatformError(
            f"Nothing is published of {', '.join(contract.name for contract, _ in chosen)}"
            + (f" on {which(selection.days)}." if selection.days else "."),
            "Name days and tables that `platform-assets status` shows as loaded.",
        )
    intact = FileCheck(platform.lake)
    verified: list[TableVerified] = []
    for contract, records in chosen:
        if records:
            work = _Work(platform, spark, contract, snapshot, records, intact, folder)
            of_table = work.verified(progress)
            verified += of_table
            if differing := [day.day for one in of_table for day in one.of("different")]:
                why = f"computed again by {engine.capitalize()}, {min(differing)} came out otherwise"
                take_off(platform, contract.name, why)
    return tuple(verified)


@dataclass(frozen=True)
class _Work:
    """Chosen days of one table."""

    platform: Platform
    spark: SparkOnDemand
    contract: Contract
    snapshot: LakeSnapshot
    records: Mapping[date, DayRecord]
    intact: FileCheck
    folder: Location
    columns: dict[tuple[str, int], str] = field(default_factory=dict)

    def verified(self, progress: OnProgress) -> list[TableVerified]:
        """Return verified days of the table and, for a silver table with rules, of its quarantine."""
        table, total = self.contract.name, len(self.records)
        progress(Progress("verifying", table, 0, total))
        done = {day: seen for day, record in self.records.items() if (seen := self._without_spark(record))}
        letters: dict[date, Verified] = {}
        for reads, days in self._groups(self.records.keys() - done.keys()):
            for batch in batches(days, self.platform.settings.batch_days):
                computed, quarantined = self._batch(reads, batch)
                done |= computed
                letters |= quarantined
                progress(Progress("verifying", table, len(done), total))
        rows = sum(day.expected.rows for day in done.values())
        progress(Progress("verifying", table, len(done), total, rows=rows, finished=True))
        tables = [TableVerified(table, _ordered(done.values()))]
        if letters:
            tables.append(TableVerified(quarantine_table(self.contract.name), _ordered(letters.values())))
        return tables

    def _without_spark(self, record: DayRecord) -> Verified | None:
        """Return the verdict from ledger, log and folders alone; None if the day has to be computed."""
        expected = Digest.parse(record.digest)
        version = self.snapshot.release.versions[self.contract.name]
        if reason := self.intact.problem(self.contract.name, version, ((record.day, record.day),)):
            return Verified(record.day, "different", reason, expected)
        if reason := self._not_verifiable(record):
            return Verified(record.day, "not verifiable", reason, expected)
        return None

    def _not_verifiable(self, record: DayRecord) -> str | None:
        if not self.contract.inputs:
            return "raw days have no transform: they are what was delivered"
        if is_mixed(record.fingerprint, record.code_version):
            made = made_by(self.platform.lake, record.publication, self.contract.name, record.day)
            scope = made.days[record.day].scope
            shown = shown_keys(scope.keys) if scope else "some keys"
            return f"only {shown} of it was computed then, the rest before: it must be computed whole"
        now = self.platform.version(self.contract.name)
        other_code, other_contract = Version(record.code_version, record.configuration).differs(now)
        if other_code:
            commit = f", git commit {shown_commits(record.git_commit)}" if record.git_commit else ""
            return f"made by other code ({record.code_version}{commit}; today's is {now.code})"
        if other_contract:
            table = self.contract.name
            before = made_by(self.platform.lake, record.publication, table, record.day).configuration
            changes = contract_changes(before, self.platform.configurations[table].parts)
            return f"made under another contract: {'; '.join(change.what for change in changes)}"
        for read in self.contract.inputs:
            spans = ranges_read(read.window, record.day, self.platform.calendar)
            version = record.reads.get(read.table)
            if version is None:
                return f"it is not on record which version of {read.table} it was made from"
            if version >= 0 and (problem := self.intact.problem(read.table, version, spans)):
                return f"its inputs no longer exist: {problem}"
            if version >= 0 and (others := self._other_columns(read.table, version)):
                return f"{read.table}, which it was made from, has other columns now: {others}"
        return None

    def _other_columns(self, table: str, version: int) -> str:
        """Return why today's contract cannot read rows of an older version; empty if it can."""
        if (table, version) not in self.columns:
            then = LakeSnapshot(self.platform, Release(self.snapshot.number, {table: version}))
            changes = changes_on_disk(then, self.platform.catalogue[table])
            self.columns[table, version] = "; ".join(change.what for change in changes if change.needs != "any days")
        return self.columns[table, version]

    def _groups(self, days: Iterable[date]) -> list[tuple[Mapping[str, int], list[date]]]:
        """Group days with the same versions of the same inputs: they can be computed together."""
        groups: defaultdict[tuple[tuple[str, int], ...], list[date]] = defaultdict(list)
        for day in sorted(days):
            groups[tuple(sorted(self.records[day].reads.items()))].append(day)
        return [(dict(reads), alike) for reads, alike in groups.items()]

    def _batch(
        self, reads: Mapping[str, int], days: Sequence[date]
    ) -> tuple[dict[date, Verified], dict[date, Verified]]:
        """Return recomputed days of the table and its quarantine."""
        release = Release(self.snapshot.number, {table: version for table, version in reads.items() if version >= 0})
        then = LakeSnapshot(self.platform, release)
        own, letters = self.folder / "rows", self.folder / "quarantined"
        parts = parts_of(sizes_read(self.contract, days, then), then.platform.settings.part_bytes)
        with tasks_for(self.spark, parts, self.platform.settings.part_bytes) as spark:
            staged = stage_days(spark, self.contract, days, then, own, letters, parts=parts)
            computed = self._compared(staged, days)
        for done in (own, letters):
            done.remove()
        return computed, self._quarantine(staged, days)

    def _compared(self, staged: Staged, days: Sequence[date]) -> dict[date, Verified]:
        session, schema = self.spark(), spark_schema(self.contract)
        path = self.platform.lake.table_path(self.contract.name)
        published = read_days(session, path, self.snapshot.files(self.contract.name), schema, ranges(days))
        lying = profile(published, (), ())
        computed = no_rows(session, schema) if staged.rows is None else staged.all_rows
        by_day: dict[date, Verified] = {}
        for day in days:
            there, expected = lying.get(day, Profile()).digest, Digest.parse(self.records[day].digest)
            by_day[day] = _compare(day, expected, there, "its files hold other rows than were published")
            if there == expected:
                made = staged.digest(day)
                by_day[day] = _compare(day, expected, made, "computed again, it has other rows than were published")
            if by_day[day].verdict == "different" and not is_sail(session):  # Sail cannot compute examples
                rows = (_of(published, day), _of(computed, day))
                by_day[day] = _with_examples(by_day[day], self.contract, *rows, self.platform.masking)
        return by_day

    def _quarantine(self, staged: Staged, days: Sequence[date]) -> dict[date, Verified]:
        """Verify quarantined rows of days that have, or had, any."""
        if not self.contract.quarantine_rules:
            return {}
        recorded = self.platform.ledger.current_days(quarantine_table(self.contract.name), at=self.snapshot.number)
        by_day: dict[date, Verified] = {}
        for day in days:
            now = staged.quarantined.get(day, Profile()).digest
            if day in recorded or now.rows:
                expected = Digest.parse(recorded[day].digest) if day in recorded else Digest()
                by_day[day] = _compare(day, expected, now, "computed again, other rows break a rule")
        return by_day


def _compare(day: date, expected: Digest, actual: Digest, reason: str) -> Verified:
    if actual == expected:
        return Verified(day, "equal", "", expected)
    return Verified(day, "different", reason, expected, actual)


def _with_examples(
    day: Verified, contract: Contract, published: DataFrame, computed: DataFrame, masking: Masking
) -> Verified:
    differences = disagreements(published, computed, contract)
    examples = tuple(
        f"{masking.shown_key(contract, contract.row_key, difference.key)}: {_described(difference)}"
        for difference in differences
    )
    return replace(day, examples=examples)


def _described(difference: Disagreement) -> str:
    in_files, computed = difference.rows
    if in_files != computed:
        return f"{counted(in_files, 'row')} in the files, {computed:,} when computed again"
    return f"differs in {', '.join(difference.columns)}"


def _of(rows: DataFrame, day: date) -> DataFrame:
    return rows.where(F.col(DAY) == F.lit(day))


def _ordered(days: Iterable[Verified]) -> tuple[Verified, ...]:
    return tuple(sorted(days, key=lambda day: day.day))


@dataclass(frozen=True)
class EngineVerified:
    """Result of the comparison.

    Args:
        by_engine: days as each engine computed them, the quarantine's after the table's; none of an engine that was not
            used.
    """

    table: str
    admission: Admission
    by_engine: dict[str, tuple[TableVerified, ...]]


def with_transform(platform: Platform, table: str) -> Contract:
    """Return the contract of a table with a transform."""
    contract = platform.catalogue[table]
    if not contract.inputs:
        raise PlatformError(
            f"{contract.name} has no transform: what is delivered is always read by Spark.",
            "Name a silver or gold table.",
        )
    if why := why_no_sail(platform.settings):
        raise PlatformError(f"Sail cannot compute {contract.name}: {why}.", "Compute with PLATFORM_ENGINE=spark.")
    return contract


def verify_engine(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: frozenset[date] | None,
    draw: Draw | None,
    folder: Location,
    author: Author,
    progress: OnProgress = no_progress,
) -> EngineVerified:
    """Compute days of a table on Spark and on Sail, and admit the table to Sail if all equal the published days.

    A table that differs, or uses an unproved expression, stays with Spark until it is verified again.
    """
    contract = with_transform(platform, table)
    platform.sync()
    by_engine: dict[str, tuple[TableVerified, ...]] = {}
    refused = why_refused(platform, spark, contract)
    if not refused:
        only = Selection(frozenset({contract.name}), days if draw is None else _drawn(platform, contract, draw))
        by_engine["spark"] = verify(platform, spark, only, folder, progress)
        session = sail_session(platform.settings)
        with columns_for("sail"):
            by_engine["sail"] = verify(platform, lambda: session, only, folder, progress, engine="sail")
        refused = _difference(by_engine)
    alike = [day for of_table in by_engine.get("sail", ())[:1] for day in of_table.of("equal") if day.expected.rows]
    if not refused and not alike:
        refused = "no published day with rows could be computed again"
    version = platform.version(contract.name)
    found = Admission(
        code_version=version.code,
        configuration=version.configuration,
        software=software_compared(),
        days=tuple(day.day for day in alike),
        rows=sum(day.expected.rows for day in alike),
        refused=refused,
        who=author.who,
        at=datetime.now(UTC),
    )
    admit(platform, contract.name, found)
    return EngineVerified(contract.name, found, by_engine)


def _drawn(platform: Platform, contract: Contract, draw: Draw) -> frozenset[date]:
    """Sample days with rows, since engines can differ only there; any days if none has rows.

    Add the newest day with quarantined rows: both engines must quarantine the same.
    """
    snapshot = LakeSnapshot.now(platform)
    days = snapshot.days(contract.name)
    letters = snapshot.days(quarantine_table(contract.name)) if contract.quarantine_rules else {}
    broken = [day for day, record in letters.items() if record.rows and day in days][-1:]
    return frozenset([*draw.of([day for day, record in days.items() if record.rows] or days), *broken])


def why_refused(platform: Platform, spark: SparkOnDemand, contract: Contract) -> str:
    """Return why Sail may not compute a table, whatever its rows, as the end of a sentence; empty if it may."""
    source = platform.catalogue[contract.inputs[0].table] if contract.layer == "silver" else None
    query = UserCode(platform.catalogue.domain_of(contract.name)).query(contract)
    # Its literals, too: to Sail 'it''s' is "its". What Spark plans does not show that.
    by_query = ("it is computed by a query, which Sail reads by a grammar of its own",) if query else ()
    reasons = [*by_query, *refused_contract(contract, source), *other_versions()]
    if not reasons:
        frames = _planned(platform, spark(), contract)
        reasons = list(dict.fromkeys(reason for frame in frames for reason in refused_expressions(frame)))
    more = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _planned(platform: Platform, session: SparkSession, contract: Contract) -> list[DataFrame]:
    """Describe Sail's plan for the newest day: its rows, and what they are reconciled with."""
    snapshot = LakeSnapshot.now(platform)
    newest = sorted(snapshot.days(contract.name))[-1:] or [platform.calendar.first]
    with users_code(contract.name):
        made = StepInputs(session, contract, snapshot).prepare(newest)
    frames = [made.frame]
    if counts := rule_aggregates(contract.judging_rules):
        frames.append(made.frame.groupBy(DAY).agg(*counts))
    for declared in contract.reconciles:
        theirs = made.inputs[declared.upstream]
        assert not isinstance(theirs, History)  # a contract is refused that is reconciled with one
        frames.append(figures_by_key(made.frame, theirs, declared, newest))
    return frames


def _difference(by_engine: dict[str, tuple[TableVerified, ...]]) -> str:
    """Return the first difference as the end of a sentence; Sail's comes before Spark's."""
    for engine in ("sail", "spark"):
        for table in by_engine[engine]:
            for day in table.of("different"):
                return f"computed by {engine.capitalize()}, {table.table} {day.day} came out otherwise: {day.reason}"
    return ""


ENGINES: tuple[EngineName, EngineName] = ("spark", "sail")
"""Before is the reference, after the other one."""


@dataclass(frozen=True)
class EnginesBeside(TableBeside):
    """Days of a table as Spark and Sail compute them.

    Args:
        differing: days with another digest, of the table or its quarantine.
        quarantines: the differing days of its quarantine.
        was_admitted: whether the table loses its admission.
    """

    differing: tuple[date, ...]
    quarantines: tuple[date, ...] = ()
    was_admitted: bool = False


def compare_engines(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: Collection[date],
    most_examples: int,
    progress: OnProgress = no_progress,
) -> EnginesBeside:
    """Compute days of a table on both engines from the current release, and compare them.

    A table that differs is no longer computed by Sail.
    """
    contract = with_transform(platform, table)
    snapshot = LakeSnapshot.now(platform)
    chosen = sorted(set(days) & snapshot.days(contract.name).keys())
    if not chosen:
        raise PlatformError(
            f"None of these days of {contract.name} is published.", "Name days that `platform-assets status` has."
        )
    progress(Progress("comparing", contract.name, 0, len(chosen)))
    sides: list[Files] = []
    contents: list[dict[date, tuple[Digest, Digest]]] = []
    made: list[tuple[str, tuple[str, ...]]] = []
    names = (contract.name, quarantine_table(contract.name))
    try:
        for engine in ENGINES:
            with new_stage(platform, names) as (publication, folders), columns_for(engine):
                made.append((publication, names))
                session = session_of(platform.settings, engine, spark)
                staged = stage_days(session, contract, chosen, snapshot, *(folders[name] for name in names))
                letters = {day: staged.quarantined.get(day, Profile()).digest for day in chosen}
                contents.append({day: (staged.digest(day), letters[day]) for day in chosen})
                files = staged_at(platform.lake, contract.name, publication) if staged.rows is not None else {}
                sides.append({day: files.get(day, ()) for day in chosen})
        beside = table_beside(platform, contract, (sides[0], sides[1]), most_examples)
    finally:
        for publication, of_stage in made:
            discard_stage(platform, publication, of_stage)
    differing = tuple(day for day in chosen if contents[0][day] != contents[1][day])
    quarantines = tuple(day for day in differing if contents[0][day][1] != contents[1][day][1])
    off = bool(differing) and take_off(
        platform, contract.name, f"compared by key, {contract.name} {differing[0]} differs between Spark and Sail"
    )
    progress(Progress("comparing", contract.name, len(chosen), len(chosen), finished=True))
    return EnginesBeside(**vars(beside), differing=differing, quarantines=quarantines, was_admitted=off)
