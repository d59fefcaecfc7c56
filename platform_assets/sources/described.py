"""A file that holds just what a contract describes: if it cannot be read either, no delivered file is to blame."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

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


def described_by(contract: Contract, kind: Format) -> bytes:
    """One row with a value of its column's type in every field.

    Args:
        contract: of the raw table.
        kind: csv, json or parquet.

    Returns:
        The content of the file.
    """
    row = {column.name: _value(column) for column in contract.columns}
    sink = io.BytesIO()
    match kind:
        case "json":
            sink.write(f"{json.dumps(row, default=str)}\n".encode())
        case "csv":
            texts = {name: [str(value)] for name, value in row.items()}
            pyarrow.csv.write_csv(pa.table(texts), sink)
        case "parquet":
            pq.write_table(pa.Table.from_pylist([row]), sink)
    return sink.getvalue()


def _value(column: Column) -> object:
    return Decimal(0) if column.digits else _VALUES["long" if column.epoch else column.type]
