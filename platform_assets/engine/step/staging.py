"""Compute one batch of days into a stage and count its rows, before any gate judges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache, partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.engine.day_contents import TOGETHER
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import InputRows, Prepared, StepInputs, in_columns_of, published_rows
from platform_assets.engine.step.proofs import files_read, probe, refuse_jobs_of_its_own, refuse_what_cannot_repeat
from platform_assets.engine.step.scoped import carried_rows, moved_keys, refuse_strangers
from platform_assets.engine.step.work import Adopted
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.selection import KeyScope
from platform_assets.planning.steps import NO_PARTS
from platform_assets.planning.windows import FilesRead, ranges
from platform_assets.quality.gates import MovedKeys, RowBalance
from platform_assets.records.differences import Digest
from platform_assets.spark.compare.in_files import FileRows, repeated_keys, staged_at_hand
from platform_assets.spark.compare.profiles import (
    Beside,
    Neighbours,
    Profile,
    breaking_beside_others,
    keys_breaking,
    profile,
    profile_few,
)
from platform_assets.spark.raw.versions import rule_counts
from platform_assets.spark.sail.session import as_spark_counts, is_sail
from platform_assets.spark.session.configuration import refuse_other_settings, software_of
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import TransformError, values_explained
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.scans import as_planned, shows_plans
from platform_assets.spark.tables.schemas import DEAD_LETTERS, spark_schema
from platform_assets.spark.tables.staging import check_columns, stage
from platform_assets.spark.windows import History


@dataclass(frozen=True)
class Staged:
    """Staged days of a table, computed from a snapshot.

    Args:
        profiles: profiles of the days with rows.
        computed: content of the computed rows by day; of all rows, unless others were copied.
        quarantined: profiles of the quarantined rows, by day.
        counts: for silver, required balance of the raw rows, by day: raw, withdrawn, quarantined, voided, expected.
        raw_recorded: for silver, raw rows delivered for each day, from the manifests.
        rows: returns the staged rows for another look: with files of many days Spark needs a second. None if no input
            day has rows, so that nothing was staged.
        few: the same rows if they can be read without Spark.
        inputs: its inputs, by table.
        tells_reads: whether its reads are known; they are not with Spark Connect or Sail.
        software: software that computed them, for a manifest.
        moved: records that moved between the computed and the copied rows, by day.
        to_come: days that the step computes later.
        is_adopted: whether they are another tool's rows, and not the transform's.
    """

    snapshot: LakeSnapshot
    contract: Contract
    days: tuple[date, ...]
    profiles: Mapping[date, Profile] = field(default_factory=dict)
    computed: Mapping[date, Digest] = field(default_factory=dict)
    quarantined: Mapping[date, Profile] = field(default_factory=dict)
    counts: Mapping[date, Mapping[str, int]] | None = None
    raw_recorded: Mapping[date, int] = field(default_factory=dict)
    rows: Callable[[], DataFrame] | None = None
    few: FileRows | None = None
    inputs: Mapping[str, InputRows] = field(default_factory=dict)
    read: FilesRead = field(default_factory=dict)
    tells_reads: bool = True
    software: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[date, MovedKeys] = field(default_factory=dict)
    to_come: Collection[date] = ()
    is_adopted: bool = False

    @property
    def platform(self) -> Platform:
        """Return the platform that computes the days."""
        return self.snapshot.platform

    @property
    def all_rows(self) -> DataFrame:
        """Return the staged rows, for a stage with rows."""
        assert self.rows is not None
        return self.rows()

    def profile(self, day: date) -> Profile:
        """Return the profile of any staged day, an empty one included."""
        return self.profiles.get(day, Profile())

    def digest(self, day: date) -> Digest:
        """Return the content of a day."""
        return self.profile(day).digest

    def row_balance(self, day: date) -> RowBalance:
        """Return the balance of a silver day's raw rows."""
        counts = (self.counts or {}).get(day, {})
        raw, bad, voided, gone = (counts.get(name, 0) for name in ("raw", "quarantined", "voided", "withdrawn"))
        kept = self.digest(day).rows
        return RowBalance(raw, kept, raw - kept - voided - bad - gone, voided, bad, gone)

    def rule_counts(self, day: date) -> Mapping[str, RuleCount]:
        """Return how many rows of a day each rule judged, by name; without rules that may set aside any number."""
        tolerant = [rule for rule in self.contract.quarantine_rules if rule.allowed is not None]
        return {**self.profile(day).rules, **rule_counts(tolerant, (self.counts or {}).get(day, {}))}

    def figures(self, day: date) -> dict[str, int]:
        """Return a day's figures: how many days it was computed with, and for silver the balance of raw rows."""
        together = {} if self.is_adopted else {TOGETHER: len(self.profiles)}
        if self.counts is None:
            return together
        row_balance = self.row_balance(day)
        counts = self.counts.get(day, {})
        return together | {
            **{name: counts.get(name, 0) for name in ("keys", "keys_quarantined")},
            **{name: counts[name] for name in ("rivals", "replaced") if counts.get(name)},
            "raw": row_balance.raw,
            "superseded": row_balance.superseded,
            "voided": row_balance.voided,
            "quarantined": row_balance.quarantined,
            "withdrawn": row_balance.withdrawn,
        }


def stage_days(
    spark: SparkOnDemand,
    contract: Contract,
    days: Collection[date],
    snapshot: LakeSnapshot,
    folder: Location,
    quarantine_folder: Location,
    *,
    together: int | None = None,
    scope: KeyScope | None = None,
    made_from: Mapping[date, str] | None = None,
    parts: Mapping[date, int] = NO_PARTS,
    small: bool = False,
    to_come: Collection[date] = (),
    adopted: Adopted | None = None,
) -> Staged:
    """Compute some days into a stage, and count its rows.

    Args:
        together: most days with rows that today's code and contract have published after computing them together; more
            days have to prove that they are repeatable. None if nothing is to be published.
        scope: keys whose rows alone are computed; other rows are copied from the snapshot.
        parts: number of parts of each large input day; Sail makes none.
        small: whether these are probably few rows.
        adopted: returns rows in place of the transform; they are counted and judged with its inputs all the same.
    """
    platform = snapshot.platform
    recorded = Counter[date]()
    if contract.layer == "silver":
        source = contract.inputs[0].table
        for day, record in snapshot.days(source).items():
            recorded[platform.counted_on(source, day)] += record.delivered
        if {platform.counted_on(source, day) for day in snapshot.files(source)}.isdisjoint(days):
            return Staged(snapshot, contract, tuple(days), counts={}, raw_recorded=recorded, to_come=to_come)
    session = spark()
    refuse_other_settings(session)
    parts = NO_PARTS if is_sail(session) else parts
    with values_explained(contract.name, days):
        inputs = StepInputs(session, contract, snapshot, scope, parts)
        prepared = inputs.prepare(days)
        if adopted is not None:
            prepared = replace(prepared, frame=adopted(session, days), clustered=False, parts=NO_PARTS, own_jobs=0)
            together = None
        if together is not None:  # always: a version set by hand stays when the code changes
            refuse_what_cannot_repeat(contract, prepared.frame)
        frame, read = _planned(session, contract, days, snapshot, prepared, is_adopted=adopted is not None)
        stage(frame, folder, clustered=prepared.clustered, parts=prepared.parts, small=small)
        rows = made = cache(partial(read_staged, session, folder))
        moved: Mapping[date, MovedKeys] = {}
        if scope is not None:
            refuse_strangers(contract, scope, made())
            stage(carried_rows(session, contract, scope, days, snapshot), folder)
            rows = cache(partial(read_staged, session, folder))
            moved = moved_keys(session, contract, scope, made_from or {}, snapshot)
        staged = Staged(
            snapshot,
            contract,
            tuple(days),
            _profiles(contract, days, rows, few := staged_at_hand(session, folder)),
            counts=prepared.counts,
            raw_recorded=recorded,
            rows=rows,
            few=few,
            inputs=prepared.inputs,
            read=read,
            tells_reads=adopted is None and shows_plans(session),
            software=software_of(session),
            moved=moved,
            to_come=to_come,
            is_adopted=adopted is not None,
        )
        judge_beside_others(staged)
        of_made = staged.profiles if scope is None else profile(made(), (), ())
        digests = {day: of_made.get(day, Profile()).digest for day in days}
        if together is not None:
            probe(inputs, made, digests, together)
        if prepared.quarantined is None:
            return replace(staged, computed=digests)
        stage(prepared.quarantined, quarantine_folder)
        bad, few = partial(read_staged, session, quarantine_folder), staged_at_hand(session, quarantine_folder)
        quarantined = _profiled(DEAD_LETTERS, bad, few)
        failpoint("stage.quarantined")
        return replace(staged, computed=digests, quarantined=quarantined)


def _planned(
    session: SparkSession,
    contract: Contract,
    days: Collection[date],
    snapshot: LakeSnapshot,
    prepared: Prepared,
    *,
    is_adopted: bool,
) -> tuple[DataFrame, FilesRead]:
    """Return the rows to stage, with the contract's schema, and their reads, as far as the session knows."""
    schema = spark_schema(contract)
    made = as_spark_counts(session, prepared.frame, schema)
    check_columns(contract.name, made, schema)
    frame = made.select(*schema.fieldNames())
    if is_adopted or not shows_plans(session):
        return frame, {}
    read = files_read(contract, days, snapshot, frame)
    refuse_jobs_of_its_own(contract, prepared.own_jobs)
    return as_planned(frame), read


def _profiles(
    contract: Contract, days: Collection[date], rows: Callable[[], DataFrame], few: FileRows | None
) -> dict[date, Profile]:
    """Return profiles of staged days with rows, which must be requested days."""
    required, rules = [column.name for column in contract.columns if not column.nullable], contract.judging_rules
    profiles = _profiled(spark_schema(contract), rows, few, required, contract.row_key, rules)
    failpoint("stage.profiled")
    if strays := set(profiles) - set(days):
        raise TransformError(
            f"The transform of {contract.name} returned rows of {min(strays)}, which it was not asked for.",
            "Return only rows of the days being computed.",
        )
    return profiles


def _profiled(
    schema: StructType,
    rows: Callable[[], DataFrame],
    few: FileRows | None,
    required: Sequence[str] = (),
    key: Sequence[str] = (),
    rules: Sequence[Rule] = (),
) -> dict[date, Profile]:
    """Profile staged rows; few rows without Spark, unless rules need counts."""
    found = profile_few(few, schema, required, key) if few and not rules else None
    return profile(rows(), required, key, rules, few) if found is None else found


def judge_beside_others(staged: Staged) -> None:
    """Add to the profiles of staged days the rows that break rules only together with others."""
    for rule in staged.contract.judging_rules if staged.profiles else ():
        if rule.kind.is_condition:
            continue
        left, few, schema = set(staged.profiles), staged.few, spark_schema(staged.contract)
        beside = _beside(staged, rule)
        again = repeated_keys(few, rule.kind.columns, schema) if few and beside is None else None
        left &= left if again is None else again.keys()
        if not left:
            continue
        some = staged.all_rows.where(F.col(DAY).isin(sorted(left)))
        for day, more in breaking_beside_others(rule, some, beside).items():
            counts = staged.profiles[day].rules
            counts[rule.name] = counts[rule.name]._replace(broken=counts[rule.name].broken + more)


def examples_of(staged: Staged, rule: Rule, days: Collection[date]) -> dict[date, tuple[str, ...]]:
    """Return the first keys, or values, of rows that break a rule on some of the staged days, sensitive ones masked."""
    contract, shown = staged.contract, staged.platform.masking.shown_key
    names, found = keys_breaking(rule, staged.all_rows, days, contract.row_key, _beside(staged, rule))
    return {day: tuple(shown(contract, names, key) for key in keys) for day, keys in found.items()}


def _beside(staged: Staged, rule: Rule) -> Beside:
    """Return what a rule needs besides the staged rows."""
    if rule.kind.table:
        reference = staged.inputs[rule.kind.table]
        assert isinstance(reference, History)  # a contract is refused that reads it otherwise
        return reference
    if rule.kind.within != "window":
        return None
    contract, rows = staged.contract, staged.all_rows
    within = staged.platform.catalogue[contract.inputs[0].table].moves_within_days
    near = {day + timedelta(n) for day in staged.days for n in range(-within, within + 1)}
    near &= staged.snapshot.files(contract.name).keys() - {*staged.days, *staged.to_come}
    there = published_rows(rows.sparkSession, contract, staged.snapshot, ranges(near)) if near else None
    if there is None or not set(rule.kind.columns) <= set(there.columns):
        return Neighbours(rows.where(F.lit(False)), within)  # staged days may still be too near to each other
    return Neighbours(in_columns_of(contract, there), within)
