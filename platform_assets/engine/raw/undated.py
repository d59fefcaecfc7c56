"""Deletes without event time find the days of their records: those that arrive, and those that are there."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import Files, staged_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.raw.tombstones import bounded_key
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.delta.key_bounds import may_lack, may_share_keys
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.windows import ranges
from platform_assets.spark.raw.withdrawals import effective_rows, is_undated, reached, tombstones, waiting
from platform_assets.spark.tables.reading import kept_frames, read_days, read_staged
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets.spark.tables.staging import stage


def stage_undated(
    platform: Platform,
    spark: SparkSession,
    contract: Contract,
    publication: str,
    folder: Location,
    snapshot: LakeSnapshot,
) -> Mapping[str, int]:
    """Stage a tombstone on every day with a record that a delete without event time takes back.

    Statistics of files say whether there is such a delete at all, so that other deliveries cost nothing.

    Args:
        contract: of the raw table.
        publication: that staged the rows.
        folder: where they are.
        snapshot: of raw before them.

    Returns:
        How many keys of arriving deletes have no record yet, by arrival.
    """
    if not contract.takes_undated:
        return {}
    staged, files = staged_at(platform.lake, contract.name, publication), snapshot.files(contract.name)
    bringing, deletes = undated_files(staged, contract), undated_files(files, contract)
    deletes = may_share_keys(deletes, staged, bounded_key(contract))
    if not (bringing or deletes):
        return {}
    ahead, late = contract.ahead_days, contract.restatement_window_days
    near = {
        day: of_day for day, of_day in files.items() if any(-ahead <= (came - day).days <= late for came in bringing)
    }

    def rows_of(some: Files) -> DataFrame:
        path, schema = platform.lake.table_path(contract.name), raw_schema(contract)
        return read_days(spark, path, some, schema, ranges(some))

    with kept_frames() as keep:
        arriving = read_staged(spark, folder)
        new, old = arriving.where(is_undated(contract)), effective_rows(rows_of(deletes)).where(is_undated(contract))
        there = rows_of(may_share_keys(near, bringing, bounded_key(contract)))
        pairs = keep(reached(new, arriving.unionByName(there), contract).unionByName(reached(old, arriving, contract)))
        stage(tombstones(pairs).select(*raw_schema(contract).fieldNames()), folder)
        return waiting(new, pairs, contract) if bringing else {}


def undated_files(files: Files, contract: Contract) -> Files:
    """Return those of some files of a raw table that can hold deletes without event time."""
    if not contract.takes_undated or contract.event_time is None:
        return {}
    some = {day: tuple(file for file in of_day if may_lack(file, contract.event_time)) for day, of_day in files.items()}
    return {day: of_day for day, of_day in some.items() if of_day}
