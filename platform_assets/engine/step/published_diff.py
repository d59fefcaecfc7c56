"""What publishing staged days would change for readers: rows and amounts, against the content until now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import published_rows
from platform_assets.engine.step.staging import Staged
from platform_assets.lakehouse.delta.schema import types_in
from platform_assets.planning.windows import ranges
from platform_assets.records.differences import DayChange
from platform_assets.records.history import DayRecord
from platform_assets.spark.compare.row_diff import day_changes
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import in_ranges, no_rows
from platform_assets.spark.tables.schemas import spark_schema


def effects(
    platform: Platform,
    spark: SparkOnDemand,
    contract: Contract,
    snapshot: LakeSnapshot,
    staged: Staged,
    days: Collection[date],
    before: Mapping[date, DayRecord],
) -> dict[date, DayChange]:
    """Compare staged days with their content until now.

    Only days that had rows and whose digest changed are compared, all of them in one job: a first load costs nothing.

    Args:
        spark: gives the session; not called where there is nothing to compare.
        snapshot: that was read.
        staged: as the days lie in the stage.
        days: that are to be published.
        before: their content until now.
    """
    differing = [
        day for day in days if day in before and before[day].rows and before[day].digest != str(staged.digest(day))
    ]
    if not differing:
        return {}
    session, schema = spark(), spark_schema(contract)
    spans = ranges(differing)
    until_now = _until_now(session, contract, snapshot, schema, spans)
    rows = no_rows(session, schema) if staged.rows is None else staged.rows.where(in_ranges(spans))
    return day_changes(until_now, rows, contract) if until_now else {}


def _until_now(
    session: SparkSession,
    contract: Contract,
    snapshot: LakeSnapshot,
    schema: StructType,
    spans: Collection[tuple[date, date]],
) -> DataFrame | None:
    """The published days in the columns of the contract, as far as they have them; None if they have another key."""
    rows = published_rows(session, contract, snapshot, spans)
    there = rows.schema
    if types_in(there.json()) == types_in(schema.json()):
        return rows
    if not set(contract.key) <= set(there.fieldNames()):
        return None
    return rows.select(
        *(
            (
                F.col(field.name).try_cast(field.dataType)
                if field.name in there.fieldNames()
                else F.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in schema
        )
    )
