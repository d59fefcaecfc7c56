"""A file that holds just what a contract describes: if it cannot be read either, no delivered file is to blame."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from platform_assets.contracts import Column, Contract
from platform_assets.contracts.landing import Format

_VALUES: dict[str, object] = {
    "long": 0,
    "int": 0,
    "string": "0",
    "boolean": False,
    "timestamp": datetime(2000, 1, 1, tzinfo=UTC),
    "date": date(2000, 1, 1),
    "double": 0.0,
}


def write_described(contract: Contract, kind: Format, folder: Path) -> Path:
    """Write one row with a value of its column's type in every field.

    Args:
        contract: of the raw table.
        kind: csv, json or parquet.
        folder: to write to, as `<table>/<arrival date>/described.<kind>`.

    Returns:
        The file.
    """
    row = {column.name: _value(column) for column in contract.columns}
    file = folder / contract.table / "2000-01-01" / f"described.{kind}"
    file.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "json":
            file.write_text(json.dumps(row, default=str) + "\n", encoding="utf-8")
        case "csv":
            texts = {name: [str(value)] for name, value in row.items()}
            pyarrow.csv.write_csv(pa.table(texts), file)
        case "parquet":
            pq.write_table(pa.Table.from_pylist([row]), file)
    return file


def _value(column: Column) -> object:
    return Decimal(0) if column.digits else _VALUES[column.type]
