"""What publishing staged days would change for readers: rows and amounts, against the content until now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.compute.comparison import day_changes
from platform_assets.compute.differences import DayChange
from platform_assets.compute.reading import in_ranges, no_rows, read_days
from platform_assets.compute.schemas import spark_schema
from platform_assets.contracts import Contract
from platform_assets.engine.basis import Basis
from platform_assets.engine.platform import Platform
from platform_assets.engine.staging import Staged
from platform_assets.lakehouse.log import snapshot
from platform_assets.lakehouse.replace import check_schema
from platform_assets.ledger.records import DayRecord
from platform_assets.planning.windows import ranges


def effects(
    platform: Platform,
    spark: Callable[[], SparkSession],
    contract: Contract,
    basis: Basis,
    staged: Staged,
    days: Collection[date],
    before: Mapping[date, DayRecord],
) -> dict[date, DayChange]:
    """Compare staged days with their content until now.

    Only days that had rows and whose digest changed are compared, all of them in one job: a first load costs nothing.

    Args:
        platform: what to work with.
        spark: gives the session; not called where there is nothing to compare.
        contract: of the table.
        basis: that was read.
        staged: as the days lie in the stage.
        days: that are to be published.
        before: their content until now.

    Raises:
        SchemaMismatchError: the table has other columns than its contract, so the days cannot be published either.
    """
    differing = [
        day for day in days if day in before and before[day].rows and before[day].digest != str(staged.digest(day))
    ]
    if not differing:
        return {}
    session, schema = spark(), spark_schema(contract)
    path = platform.lake.table_path(contract.name)
    check_schema(contract.name, schema.json(), snapshot(path, basis.version(contract.name)).schema_string)
    spans = ranges(differing)
    rows = no_rows(session, schema) if staged.rows is None else staged.rows.where(in_ranges(spans))
    return day_changes(read_days(session, path, basis.files(contract.name), schema, spans), rows, contract)
