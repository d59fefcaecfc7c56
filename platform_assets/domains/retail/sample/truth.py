"""The truth a sample knows of itself, in the landing root's hidden folder `.truth`.

`transactions.parquet` and `products.parquet` hold every version as it should be, with its day (`event_date`), the date
on which it first arrives and its kind; `deliveries.parquet` says for every file how many rows it brings, how many of
them cannot enter raw and how many break a rule. The truth is of the whole sample, whatever of it has landed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.files import arrow_schema

TRUTH = ".truth"
_DATES = (pa.field(DAY, pa.date32()), pa.field("arrival_date", pa.date32()), pa.field("kind", pa.string()))
_SCHEMAS = {
    "transactions": arrow_schema(RAW_TRANSACTIONS, *_DATES, pa.field("malformation", pa.string())),
    "products": arrow_schema(RAW_PRODUCTS, *_DATES),
    "deliveries": pa.schema(
        {
            "table": pa.string(),
            "arrival_date": pa.date32(),
            "file": pa.string(),
            "rows": pa.int64(),
            "refused": pa.int64(),
            "quarantined": pa.int64(),
        }
    ),
}


@dataclass(frozen=True)
class Delivery:
    """A file of the sample.

    Args:
        table: folder of the landing root.
        arrival_date: folder in it.
        file: name.
        rows: lines or rows, without a header.
        refused: of them, how many cannot enter raw.
        quarantined: of them, how many enter raw and break a rule.
    """

    table: str
    arrival_date: date
    file: str
    rows: int
    refused: int
    quarantined: int

    @property
    def path(self) -> str:
        """Below the landing root."""
        return f"{self.table}/{self.arrival_date}/{self.file}"


def read_deliveries(landing: Path) -> tuple[Delivery, ...] | None:
    """Every file of the sample, landed or not, oldest arrival date first; None before the truth is written."""
    file = landing / TRUTH / "deliveries.parquet"
    return (
        tuple(Delivery(**row) for row in pl.read_parquet(file, glob=False).rows(named=True)) if file.is_file() else None
    )


def read_true_lines(landing: Path) -> pl.LazyFrame:
    """Every version of every till line of the sample as it should be, with `event_date`, `arrival_date` and `kind`."""
    return pl.scan_parquet(landing / TRUTH / "transactions.parquet", glob=False)


class TruthWriter:
    """Writes the truth piece by piece; it is there once the block ends without an error, and not before."""

    def __init__(self, landing: Path) -> None:
        self._folder = landing / TRUTH
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> TruthWriter:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, schema in _SCHEMAS.items():
            self._writers[name] = pq.ParquetWriter(self._unfinished(name), schema, compression="zstd")
        return self

    def add(self, name: str, rows: pl.DataFrame) -> None:
        """More rows of transactions, products or deliveries."""
        schema = _SCHEMAS[name]
        self._writers[name].write_table(rows.select(schema.names).to_arrow().cast(schema))

    def add_deliveries(self, deliveries: list[Delivery]) -> None:
        """All files of the sample."""
        ordered = sorted(deliveries, key=lambda delivery: (delivery.arrival_date, delivery.table, delivery.file))
        self.add("deliveries", pl.DataFrame(ordered, schema=_SCHEMAS["deliveries"].names, infer_schema_length=None))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
        for name in _SCHEMAS:  # deliveries last: where they are, the rest is
            if error is None:
                self._unfinished(name).replace(self._folder / f"{name}.parquet")
            else:
                self._unfinished(name).unlink(missing_ok=True)

    def _unfinished(self, name: str) -> Path:
        return self._folder / f".{name}.{os.getpid()}.parquet"
