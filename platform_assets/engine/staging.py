"""One batch of days computed into a stage and counted there, before any gate looks at it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

from platform_assets.compute.profiles import Profile, profile, read_staged
from platform_assets.compute.schemas import spark_schema
from platform_assets.compute.staging import TransformError, check_columns, stage
from platform_assets.contracts import Contract
from platform_assets.engine.changes import files_at
from platform_assets.engine.frames import Prepared, prepare
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.releases import Release
from platform_assets.quality.gates import Breach, Fate, conservation_breaches, contract_breaches


@dataclass(frozen=True)
class Staged:
    """Days as they lie in the stage.

    Args:
        profiles: of the days that have rows.
        quarantined: profiles of the quarantined rows, by day.
        counts: for silver, what must become of the raw rows, by day: raw, quarantined, voided, expected.
        raw_recorded: for silver, raw rows of each day as the manifests have them, tombstones not counted.
    """

    profiles: Mapping[date, Profile] = field(default_factory=dict)
    quarantined: Mapping[date, Profile] = field(default_factory=dict)
    counts: Mapping[date, Mapping[str, int]] | None = None
    raw_recorded: Mapping[date, int] = field(default_factory=dict)

    def fate(self, day: date) -> Fate:
        """What became of a silver day's raw rows."""
        counts = (self.counts or {}).get(day, {})
        raw, bad, voided = (counts.get(name, 0) for name in ("raw", "quarantined", "voided"))
        kept = self.profiles.get(day, Profile()).digest.rows
        return Fate(raw, kept, raw - kept - voided - bad, voided, bad)

    def figures(self, day: date) -> dict[str, int]:
        """Counts to publish with a day: of silver, what became of its raw rows."""
        if self.counts is None:
            return {}
        fate = self.fate(day)
        return {
            "raw": fate.raw,
            "superseded": fate.superseded,
            "voided": fate.voided,
            "quarantined": fate.quarantined,
        }

    def breaches(self, contract: Contract, day: date) -> tuple[Breach, ...]:
        """What the blocking gates say of a day."""
        found = self.profiles.get(day, Profile())
        breaches = contract_breaches(contract.name, day, found.nulls, contract.key, found.repeated_keys)
        if self.counts is not None:
            breaches += conservation_breaches(
                contract.name,
                day,
                self.fate(day),
                expected=self.counts.get(day, {}).get("expected", 0),
                raw_recorded=self.raw_recorded.get(day, 0),
                quarantine_staged=self.quarantined.get(day, Profile()).digest.rows,
            )
        return tuple(breaches)


def stage_days(
    platform: Platform,
    spark: Callable[[], SparkSession],
    contract: Contract,
    days: Collection[date],
    release: Release,
    folder: Path,
    quarantine_folder: Path,
) -> Staged:
    """Compute some days at a release into a stage, and count what lies there.

    Raises:
        TransformError: the transform returned other columns, or other days, than it was asked for.
    """
    recorded: dict[date, int] = {}
    if contract.layer == "silver":
        source = contract.inputs[0].table
        loaded = platform.ledger.current_days(source, at=release.number)
        recorded = {day: found.rows - found.figures.get("tombstones", 0) for day, found in loaded.items()}
        if not any(files_at(platform.lake, source, release.versions.get(source)).get(day) for day in days):
            return Staged(counts={}, raw_recorded=recorded)
    session = spark()
    prepared = prepare(platform, session, contract, days, release)
    profiles, quarantined = _stage(session, contract, prepared, folder, quarantine_folder)
    if strays := set(profiles) - set(days):
        raise TransformError(
            f"The transform of {contract.name} returned rows of {min(strays)}, which it was not asked for.",
            "Return only rows of the days being computed.",
        )
    return Staged(profiles, quarantined, prepared.counts, recorded)


def _stage(
    spark: SparkSession, contract: Contract, prepared: Prepared, folder: Path, quarantine_folder: Path
) -> tuple[dict[date, Profile], dict[date, Profile]]:
    schema = spark_schema(contract)
    check_columns(contract.name, prepared.frame, schema)
    stage(prepared.frame.select(*schema.fieldNames()), folder, clustered=prepared.clustered)
    required = [column.name for column in contract.columns if not column.nullable]
    profiles = profile(read_staged(spark, folder), required, contract.key)
    if prepared.quarantined is None:
        return profiles, {}
    stage(prepared.quarantined, quarantine_folder)
    return profiles, profile(read_staged(spark, quarantine_folder), (), ())
