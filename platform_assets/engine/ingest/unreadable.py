"""Find which files of a batch make Spark fail, so that they do not keep the others from being taken."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from platform_assets.contracts import Column, Contract
from platform_assets.contracts.landing import Format
from platform_assets.sources.landing import LandedFile
from platform_assets.spark.tables.failures import complaint

_VALUES: dict[str, object] = {
    "long": 0,
    "int": 0,
    "string": "0",
    "boolean": False,
    "timestamp": datetime(2000, 1, 1, tzinfo=UTC),
    "date": date(2000, 1, 1),
    "double": 0.0,
}


def untakeable(
    parsed: Callable[[Sequence[LandedFile]], DataFrame],
    described: Callable[[LandedFile], DataFrame],
    files: Sequence[LandedFile],
) -> dict[LandedFile, str]:
    """Find the files that Spark cannot take even alone, each with the reason, by halving, so that few cost little.

    No rows are written. Where they come through, so that it was writing them that failed, no file is to blame; nor
    where Spark fails as well with a file that is as it should be.

    Args:
        parsed: the rows of some files, which may fail before they are read.
        described: the rows of a file in the same format that holds just what the contract describes.

    Raises:
        PySparkException, Py4JError: not a file makes Spark fail, but the machine, an interruption, or how it reads.
    """
    try:
        _read_through(parsed(files))
    except (PySparkException, Py4JError) as error:
        reason = complaint(error)
        if reason is None:
            raise
        if len(files) == 1:
            # A file that is refused is not tried again: so it has to be the file.
            _read_through(described(files[0]))
            return {files[0]: f"cannot be read by Spark: {reason}"}
        half = len(files) // 2
        return untakeable(parsed, described, files[:half]) | untakeable(parsed, described, files[half:])
    return {}


def _read_through(rows: DataFrame) -> None:
    """Compute every field of every row, and forget it."""
    rows.write.format("noop").mode("overwrite").save()


def described_by(contract: Contract, kind: Format) -> bytes:
    """One row with a value of its column's type in every field.

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
