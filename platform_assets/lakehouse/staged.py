"""The log of a stage: what Spark wrote there as plain Parquet, as a Delta table with the statistics of every file."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType

from platform_assets.contracts import DAY
from platform_assets.lakehouse import storage


def log_stage(folder: Path, schema_string: str) -> None:
    """Make a Delta table of the files in a stage's folder, in place of what its log said before.

    Args:
        folder: with a folder `event_date=…` for each day.
        schema_string: Delta schema of the rows, for a stage without files.
    """
    log = folder / "_delta_log"
    if storage.exists(log):
        storage.remove(log)
    if any(name.startswith(f"{DAY}=") for name in storage.names(folder)):
        day = Schema([Field(DAY, PrimitiveType("date"))])
        convert_to_deltalake(folder, partition_by=day, partition_strategy="hive")
    else:
        DeltaTable.create(folder, Schema.from_json(schema_string), partition_by=[DAY])
