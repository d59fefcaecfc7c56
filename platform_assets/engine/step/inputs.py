"""Rows of a step before staging: inputs read through their windows, rules, newest versions, transform."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY, AsOf, Contract, Input, Span
from platform_assets.contracts.rules import SUPERSEDED
from platform_assets.engine.platform import Platform, transform_of
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.raw import effective_raw_rows, has_withdrawals
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.reference_data import history_key, history_order
from platform_assets.lakehouse.delta.schema import schema_at
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.selection import KeyScope
from platform_assets.planning.steps import NO_PARTS, has_heavy_key
from platform_assets.planning.windows import ranges, union_read
from platform_assets.records.raw_rows import RECORD
from platform_assets.spark.raw.dead_letters import quarantined_rows
from platform_assets.spark.raw.markers import (
    delivered_rows,
    newest_deliveries,
    with_withdrawn,
    withdrawn_rows,
    within_reach_only,
)
from platform_assets.spark.raw.versions import (
    greatest_versions,
    in_order,
    row_balances,
    superseded_rows,
    valid_at_start,
    with_verdict,
)
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import users_code
from platform_assets.spark.tables.reading import in_scope, read_days
from platform_assets.spark.tables.scans import with_own_jobs
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets.spark.tables.staging import stage
from platform_assets.spark.windows import History, Windowed

InputRows = DataFrame | Windowed | History
"""What a transform is given for an input."""

Arrange = Callable[[DataFrame], DataFrame]
"""Gives the same rows in another order."""


@dataclass(frozen=True)
class Prepared:
    """Rows that a step is going to stage.

    Args:
        frame: its rows, not computed yet.
        clustered: whether each day is in one Spark partition, or in as many as it is to have parts.
        quarantined: rows that broke a rule; None without any.
        counts: for silver, by day: raw, withdrawn, quarantined, voided and expected rows, counted from the keys alone.
        inputs: all inputs of its days, by table, also outside the scope: for silver the raw rows that count, with all
            their versions.
        own_jobs: Spark jobs that the transform started while describing its rows.
    """

    frame: DataFrame
    clustered: bool = False
    parts: Mapping[date, int] = field(default_factory=dict)
    quarantined: DataFrame | None = None
    counts: Mapping[date, Mapping[str, int]] | None = None
    inputs: Mapping[str, InputRows] = field(default_factory=dict)
    own_jobs: int = 0


@dataclass(frozen=True)
class StepInputs:
    """Inputs of days of a silver or gold table, read at a snapshot.

    Args:
        scope: for a gold table, keys whose rows alone are computed.
    """

    spark: SparkSession
    contract: Contract
    snapshot: LakeSnapshot
    scope: KeyScope | None = None
    parts: Mapping[date, int] = field(default_factory=lambda: NO_PARTS)

    @property
    def source(self) -> Contract:
        """Return the first input; for a silver table its raw one."""
        return self.snapshot.platform.catalogue[self.contract.inputs[0].table]

    def prepare(self, days: Collection[date]) -> Prepared:
        """Read the inputs of some days and apply the rules, the order of versions and the transform."""
        if self.contract.layer == "silver":
            return self._prepare_silver(days)
        inputs = replace(self, scope=None).input_rows(days)
        frame, own_jobs = self._described(inputs if self.scope is None else self.input_rows(days))
        of_tables = {read.table: inputs[read.parameter] for read in self.contract.inputs}
        return Prepared(frame, inputs=of_tables, own_jobs=own_jobs)

    def input_rows(self, days: Collection[date], arranged: Arrange | None = None) -> dict[str, InputRows]:
        """Return the arguments of the transform for some days, by parameter.

        Args:
            arranged: reorders the rows of every input.
        """
        if self.contract.layer == "silver":
            versions = _versions(self.spark, self.source, self.contract, days, self.snapshot)
            rows = _newest(self.source, self.contract, versions)
            return {self.contract.inputs[0].parameter: arranged(rows) if arranged else rows}
        return {read.parameter: self._rows(read, days, arranged) for read in self.contract.inputs}

    def transformed(self, given: Mapping[str, InputRows]) -> DataFrame:
        """Return the transform's result for its inputs, not computed yet."""
        return transform_of(self.snapshot.platform.catalogue, self.contract)(**given)

    def _described(self, given: Mapping[str, InputRows]) -> tuple[DataFrame, int]:
        with users_code(self.contract.name):
            return with_own_jobs(self.spark, lambda: self.transformed(given))

    def _rows(self, read: Input, days: Collection[date], arranged: Arrange | None = None) -> InputRows:
        platform = self.snapshot.platform
        source, spans = platform.catalogue[read.table], union_read(read.window, days, self.snapshot.calendar)
        frame = _read(self.spark, source, spark_schema(source), spans, self.snapshot)
        # Validity on a day depends on other rows of the key
        if self.scope is not None and not isinstance(read.window, AsOf):
            frame = frame.where(in_scope(self.contract, self.scope, source.column_names))
        frame = arranged(frame) if arranged else frame
        match read.window:
            case Span(0, 0):
                return frame
            case AsOf():
                keys = history_key(platform.catalogue, source.name)
                return History(frame, keys, history_order(platform.catalogue, source.name))
            case _:
                return Windowed(frame, read.window, days)

    def _prepare_silver(self, days: Collection[date]) -> Prepared:
        spark, contract, source, snapshot, parts = self.spark, self.contract, self.source, self.snapshot, self.parts
        platform, rules = snapshot.platform, contract.quarantine_rules
        raw_days = {*days, *_days_before(source, days, snapshot)}
        withdrawn, delivered = Counter[date](), Counter[date]()
        if has_withdrawals(source.name, raw_days, snapshot):
            all_rows = _read(spark, source, raw_schema(source), ranges(raw_days), snapshot)
            for day, rows in withdrawn_rows(all_rows).items():
                withdrawn[platform.counted_on(source.name, day)] += rows
        raw = _versions(spark, source, contract, days, snapshot)
        if len(raw_days) > len(set(days)) or (source.source is not None and source.source.replaces):
            for day, rows in delivered_rows(effective_raw_rows(spark, source, raw_days, snapshot)).items():
                delivered[platform.counted_on(source.name, day)] += rows  # also what others replace: it is superseded
        with users_code(contract.name, "rules"):
            counts = with_withdrawn(row_balances(raw, source, rules), withdrawn, delivered)
        any_bad = any(balance["quarantined"] for balance in counts.values())
        heavy = any(
            has_heavy_key(parts.get(day, 1), balance["raw"], balance["most_versions"])
            for day, balance in counts.items()
        )
        newest = _newest(source, contract, raw, parts, heavy=heavy)
        frame, own_jobs = self._described({contract.inputs[0].parameter: newest})
        return Prepared(
            frame,
            clustered=not heavy,
            parts=parts,
            quarantined=quarantined_rows(raw, source.column_names, rules, source.void_condition) if any_bad else None,
            counts=counts,
            inputs={source.name: raw, **{also.table: self._rows(also, days) for also in contract.inputs[1:]}},
            own_jobs=own_jobs,
        )


def _days_before(source: Contract, days: Collection[date], snapshot: LakeSnapshot) -> set[date]:
    """Return the raw days before the calendar whose rows count on its first day, if that is among some days."""
    counted_on = {day: snapshot.platform.counted_on(source.name, day) for day in snapshot.files(source.name)}
    return {day for day, on in counted_on.items() if day != on and on in days}


@contextmanager
def staged_superseded(
    platform: Platform, spark: SparkOnDemand, table: str, days: Collection[date] | None, release: Release
) -> Iterator[Location]:
    """Write the rows of `superseded.<silver table>` into a temporary folder; they are not stored.

    Raises:
        UnknownTableError: no silver table has the name.
    """
    contract = platform.catalogue[f"silver.{table.removeprefix(SUPERSEDED)}"]
    snapshot, source = LakeSnapshot(platform, release), platform.catalogue[contract.inputs[0].table]
    there = [day for day in snapshot.days(contract.name) if days is None or day in days]
    with new_stage(platform, (source.name,)) as (publication, folders):
        raw = _versions(spark(), source, contract, there, snapshot)
        good = with_verdict(raw, contract.quarantine_rules, source.void_condition).where("_good")
        stage(superseded_rows(good, source), folders[source.name])
        yield folders[source.name]
        discard_stage(platform, publication, (source.name,))


def published_rows(
    session: SparkSession, contract: Contract, snapshot: LakeSnapshot, spans: Collection[tuple[date, date]]
) -> DataFrame:
    """Return the published rows of some days, in the columns that the table has."""
    path = snapshot.platform.lake.table_path(contract.name)
    there = StructType.fromJson(json.loads(schema_at(path, snapshot.release.versions[contract.name])))
    return read_days(session, path, snapshot.files(contract.name), there, spans)


def in_columns_of(contract: Contract, rows: DataFrame) -> DataFrame:
    """Return published rows in the columns of the contract; null if the table lacks one, or has another type."""
    return rows.select(
        *(
            (F.col(field.name).try_cast(field.dataType) if field.name in rows.columns else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in spark_schema(contract)
        )
    )


def counting_rows(spark: SparkSession, source: Contract, days: Collection[date], snapshot: LakeSnapshot) -> DataFrame:
    """Return the version of each key of a raw table that counts on some days, before any rule of a silver table."""
    return _newest(source, source, _versions(spark, source, source, days, snapshot))


def _versions(
    spark: SparkSession,
    source: Contract,
    contract: Contract,
    days: Collection[date],
    snapshot: LakeSnapshot,
) -> DataFrame:
    """Return the raw rows of some days that count, in order, with the versions of their keys on other days in reach."""
    before = _days_before(source, days, snapshot)
    raw = effective_raw_rows(spark, source, {*days, *before}, snapshot)
    raw = in_order(raw, source, *snapshot.places(source))
    is_replaced = source.source is not None and source.source.replaces
    raw = within_reach_only(newest_deliveries(raw) if is_replaced else raw, source.moves_within_days)
    return valid_at_start(raw, snapshot.calendar.first, source, contract.quarantine_rules) if before else raw


def _newest(
    source: Contract, contract: Contract, raw: DataFrame, parts: Mapping[date, int] = NO_PARTS, *, heavy: bool = False
) -> DataFrame:
    good = with_verdict(raw, contract.quarantine_rules, source.void_condition).where("_good").drop("_good")
    newest = greatest_versions(good, source, parts, heavy=heavy)
    return newest.where(F.col("_kind") == RECORD).select(*source.column_names, DAY)


def _read(
    spark: SparkSession,
    source: Contract,
    schema: StructType,
    spans: Collection[tuple[date, date]],
    snapshot: LakeSnapshot,
) -> DataFrame:
    path = snapshot.platform.lake.table_path(source.name)
    return read_days(spark, path, snapshot.files(source.name), schema, spans)
