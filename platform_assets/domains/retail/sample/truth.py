"""The truth a sample knows of itself, in the landing root's hidden folder `.truth`.

`transactions.parquet` and `products.parquet` hold every version as it should be, with its day (`event_date`), the date
on which it first arrives and its kind; `deliveries.parquet` says for every file how many rows it brings, how many of
them cannot enter raw and how many break a rule. The truth is of the whole sample, whatever of it has landed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.files import arrow_schema, delivered_at, encode, write
from platform_assets.domains.retail.sample.simulation import Simulation

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
        table: folder of the landing root, in which each arrival date has one.
        rows: without a header.
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
    """Return every file of the sample, landed or not, oldest arrival date first; None before the truth is written."""
    file = landing / TRUTH / "deliveries.parquet"
    return (
        tuple(Delivery(**row) for row in pl.read_parquet(file, glob=False).rows(named=True)) if file.is_file() else None
    )


@contextmanager
def truth_writer(landing: Path) -> Iterator[Callable[[str, pl.DataFrame], None]]:
    """Give what adds rows of transactions, products or deliveries; they are there once this ends without error."""
    folder = landing / TRUTH
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = {name: folder / f".{name}.{os.getpid()}.parquet" for name in _SCHEMAS}
    try:
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(pq.ParquetWriter(unfinished[name], schema, compression="zstd"))
                for name, schema in _SCHEMAS.items()
            }
            yield lambda name, rows: writers[name].write_table(
                rows.select(_SCHEMAS[name].names).to_arrow().cast(_SCHEMAS[name])
            )
    except BaseException:
        for file in unfinished.values():
            file.unlink(missing_ok=True)
        raise
    for name, file in unfinished.items():  # deliveries last: where they are, the rest is
        file.replace(folder / f"{name}.parquet")


def in_order(deliveries: Iterable[Delivery]) -> pl.DataFrame:
    """Return files of the sample as rows, oldest arrival date first."""
    ordered = sorted(deliveries, key=lambda delivery: (delivery.arrival_date, delivery.table, delivery.file))
    return pl.DataFrame(ordered, schema=_SCHEMAS["deliveries"].names, infer_schema_length=None)


LINES = 5
_AFTER_DAYS = 20
_NAME = "recount-1.csv"


@dataclass(frozen=True)
class Recount:
    """A file that corrects a few lines of one day; its path is below the landing root."""

    path: str
    day: date
    store: int


def land_recount(simulation: Simulation, landing: Path) -> Recount | None:
    """Write the file, unless it is there already; None where no day has so many lines that nothing else corrects.

    It is no part of the sample's truth, so that it can be landed or left out.

    The lines are of one store, on the day nearest to the middle of the sample. Each was sold at twice the price.
    """
    lines = pl.scan_parquet(landing / TRUTH / "transactions.parquet", glob=False)
    middle = (simulation.days - 1) // 2
    for place in sorted(range(simulation.days), key=lambda place: abs(place - middle)):
        day = simulation.first + timedelta(days=place)
        chosen = _chosen(lines, day)
        if len(chosen) == LINES:
            arrival = day + timedelta(days=_AFTER_DAYS)
            path = f"transactions/{arrival}/{_NAME}"
            if not (landing / path).exists():
                _deliver(landing / path, chosen, arrival)
            return Recount(path, day, chosen["store_id"][0])
    return None


def _chosen(lines: pl.LazyFrame, day: date) -> pl.DataFrame:
    """Return lines of the store that has most lines which came on their day and have no other version."""
    key = list(RAW_TRANSACTIONS.key)
    good = (pl.col("kind") == "original") & (pl.col("arrival_date") == pl.col(DAY)) & (pl.col("sales_value") > 0)
    candidates = lines.filter((pl.col(DAY) == day) & good & pl.col("malformation").is_null()).collect()
    versions = lines.select(key).join(candidates.select(key).lazy(), on=key, how="semi").group_by(key).len().collect()
    alone = candidates.join(versions.filter(pl.col("len") == 1), on=key, how="semi")
    stores = alone["store_id"].value_counts().sort(["count", "store_id"], descending=[True, False])
    return alone.filter(pl.col("store_id").is_in(stores["store_id"].head(1).implode())).sort(key).head(LINES)


def _deliver(file: Path, lines: pl.DataFrame, arrival: date) -> None:
    written = pl.lit(arrival).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") + pl.duration(hours=5)
    again = lines.with_columns((pl.col("sales_value") * 2).cast(lines.schema["sales_value"]), updated_at=written)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, encode(again, RAW_TRANSACTIONS, file.name), delivered_at(arrival))
