"""Rows of which a newer version counts: looked up in raw when somebody asks, and kept nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date

from platform_assets.contracts.dead_letters import SUPERSEDED
from platform_assets.engine.platform import Platform
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import superseded_rows
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.staging import stage


@contextmanager
def staged_superseded(
    platform: Platform, spark: SparkOnDemand, table: str, days: Collection[date] | None, release: Release
) -> Iterator[Location]:
    """Write the rows of `superseded.<silver table>` into a folder that is removed afterwards.

    Raises:
        UnknownTableError: no silver table has the name.
    """
    contract = platform.catalogue[f"silver.{table.removeprefix(SUPERSEDED)}"]
    snapshot, raw = LakeSnapshot(platform, release), contract.inputs[0].table
    there = [day for day in snapshot.days(contract.name) if days is None or day in days]
    with new_stage(platform, (raw,)) as (publication, folders):
        stage(superseded_rows(platform, spark(), contract, there, snapshot), folders[raw])
        yield folders[raw]
        discard_stage(platform, publication, (raw,))
