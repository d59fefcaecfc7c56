"""The rows of a step before they are staged: inputs read through their windows, rules, newest versions, transform."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.compute.dead_letters import quarantined
from platform_assets.compute.dedup import RECORD, fates, greatest, keeps_rules
from platform_assets.compute.profiles import Profile
from platform_assets.compute.reading import read_days
from platform_assets.compute.schemas import DEAD_LETTERS, raw_schema, spark_schema
from platform_assets.compute.windows import History, Windowed
from platform_assets.contracts import DAY, AsOf, Contract, Input, Span
from platform_assets.engine.platform import Platform, transform_of
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.windows import ranges, union_read
from platform_assets.quality.gates import Breach, Fate, conservation_breaches


@dataclass(frozen=True)
class Prepared:
    """What a step is going to stage, and what it is held against.

    Args:
        table: the table.
        frame: its rows, not computed yet.
        clustered: each day lies in one Spark partition.
        quarantined: rows that broke a rule; None where there are none.
        counts: for silver, by day: raw, quarantined, voided and expected rows, counted from the keys alone.
        raw_recorded: for silver, raw rows of each day as the manifests have them, tombstones not counted.
    """

    table: str
    frame: DataFrame
    clustered: bool = False
    quarantined: DataFrame | None = None
    counts: Mapping[date, Mapping[str, int]] | None = None
    raw_recorded: Mapping[date, int] = field(default_factory=dict)

    @property
    def dead_schema(self) -> StructType:
        """Columns of the quarantine."""
        return DEAD_LETTERS

    def fate(self, day: date, kept: int) -> Fate:
        """What became of a day's raw rows if `kept` of them are staged."""
        counts = (self.counts or {}).get(day, {})
        raw, bad, voided = (counts.get(name, 0) for name in ("raw", "quarantined", "voided"))
        return Fate(raw, kept, raw - kept - voided - bad, voided, bad)

    def conservation(self, day: date, kept: int, quarantine_staged: int) -> list[Breach]:
        """Breaches of conservation, for silver."""
        if self.counts is None:
            return []
        return conservation_breaches(
            self.table,
            day,
            self.fate(day, kept),
            expected=self.counts.get(day, {}).get("expected", 0),
            raw_recorded=self.raw_recorded.get(day, 0),
            quarantine_staged=quarantine_staged,
        )

    def figures(self, profiles: Mapping[date, Profile]) -> dict[date, dict[str, int]]:
        """Counts to publish with each day, for silver."""
        days = set(profiles) | set(self.counts or {})
        fates_of = {day: self.fate(day, profiles.get(day, Profile()).digest.rows) for day in days}
        if self.counts is None:
            return {day: {"rows": profiles[day].digest.rows} for day in profiles}
        return {
            day: {
                "raw": fate.raw,
                "superseded": fate.superseded,
                "voided": fate.voided,
                "quarantined": fate.quarantined,
            }
            for day, fate in fates_of.items()
        }


def prepare(
    platform: Platform,
    spark: SparkSession,
    contract: Contract,
    days: Collection[date],
    release: Release,
) -> Prepared:
    """Read the inputs of some days at a release and apply the rules, the order of versions and the transform."""
    if contract.layer == "silver":
        return _prepare_silver(platform, spark, contract, days, release)
    transform = transform_of(platform, contract)
    inputs = {read.parameter: _input(platform, spark, read, days, release) for read in contract.inputs}
    return Prepared(contract.name, transform(**inputs))


def _prepare_silver(
    platform: Platform,
    spark: SparkSession,
    contract: Contract,
    days: Collection[date],
    release: Release,
) -> Prepared:
    source = platform.catalogue[contract.inputs[0].table]
    raw = _read(platform, spark, source, raw_schema(source), ranges(days), release)
    counts = fates(raw, source.key, contract.rules)
    newest = greatest(raw.where(keeps_rules(contract.rules)), source.key)
    rows = newest.where(F.col("_kind") == RECORD).select(*source.column_names, DAY)
    any_bad = any(found["quarantined"] for found in counts.values())
    recorded = platform.ledger.current_days(source.name, at=release.number)
    return Prepared(
        table=contract.name,
        frame=transform_of(platform, contract)(**{contract.inputs[0].parameter: rows}),
        clustered=True,
        quarantined=quarantined(raw, source.column_names, contract.rules) if any_bad else None,
        counts=counts,
        raw_recorded={day: found.rows - found.figures.get("tombstones", 0) for day, found in recorded.items()},
    )


def _input(
    platform: Platform,
    spark: SparkSession,
    read: Input,
    days: Collection[date],
    release: Release,
) -> DataFrame | Windowed | History:
    source = platform.catalogue[read.table]
    spans = union_read(read.window, days, platform.calendar)
    frame = _read(platform, spark, source, spark_schema(source), spans, release)
    match read.window:
        case Span(0, 0):
            return frame
        case AsOf():
            effective = platform.catalogue[source.inputs[0].table].event_time
            return History(frame, tuple(name for name in source.key if name != effective))
        case _:
            return Windowed(frame, read.window, days, platform.calendar)


def _read(
    platform: Platform,
    spark: SparkSession,
    source: Contract,
    schema: StructType,
    spans: Collection[tuple[date, date]],
    release: Release,
) -> DataFrame:
    path = platform.lake.table_path(source.name)
    return read_days(spark, path, release.versions.get(source.name), schema, spans)
