"""Keys that staged raw rows put on another day: the days that lose get tombstones in the same publication."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.compute.kinds import TOMBSTONE
from platform_assets.compute.moves import tombstones
from platform_assets.compute.reading import read_days, read_staged
from platform_assets.compute.schemas import raw_schema
from platform_assets.compute.staging import stage
from platform_assets.compute.withdrawals import as_raw, standing
from platform_assets.contracts import Contract
from platform_assets.engine.basis import Basis
from platform_assets.engine.changes import staged_at
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.key_bounds import may_share_keys
from platform_assets.planning.windows import ranges, within_reach


def stage_tombstones(
    platform: Platform,
    spark: SparkSession,
    contract: Contract,
    publication: str,
    folder: Path,
    basis: Basis,
    *,
    few: bool,
) -> None:
    """Compare staged rows with raw's within the contract's `moves_within_days` and stage the tombstones beside them.

    Args:
        platform: what to work with.
        spark: session.
        contract: of the raw table.
        publication: that staged the rows.
        folder: where they are.
        basis: whose raw rows they are compared with.
        few: as for `compute.moves.tombstones`.
    """
    if not contract.moves_within_days:
        return
    staged = staged_at(platform.lake, contract.name, publication)
    near = within_reach(staged, contract.moves_within_days)
    there = {day: files for day, files in basis.files(contract.name).items() if day in near}
    withdrawn = has_withdrawals(contract.name, near, basis)
    if not withdrawn:  # which say of other files' rows that they count no more
        there = may_share_keys(there, staged, [name for name in contract.key if _has_bounds(contract, name)])
    present: DataFrame | None = None
    if there:
        rows = read_days(spark, platform.lake.table_path(contract.name), there, raw_schema(contract), ranges(there))
        present = (standing(rows) if withdrawn else rows).where(F.col("_kind") != TOMBSTONE)
    found = tombstones(read_staged(spark, folder), present, contract.key, contract.moves_within_days, few=few)
    if found is not None:
        stage(as_raw(found, raw_schema(contract)), folder)


def standing_rows(
    platform: Platform, spark: SparkSession, contract: Contract, days: Collection[date], basis: Basis
) -> DataFrame:
    """The rows of some raw days that count: all, or those not withdrawn where there are withdrawals."""
    path = platform.lake.table_path(contract.name)
    rows = read_days(spark, path, basis.files(contract.name), raw_schema(contract), ranges(days))
    return standing(rows) if has_withdrawals(contract.name, days, basis) else rows


def _has_bounds(contract: Contract, name: str) -> bool:
    return contract.column(name).type in ("long", "int", "string", "date")


def has_withdrawals(table: str, days: Collection[date], basis: Basis) -> bool:
    """Whether anything was withdrawn from some raw days, as their manifests say."""
    loaded = basis.days(table)
    return any(loaded[day].figures.get("withdrawals") for day in days if day in loaded)
