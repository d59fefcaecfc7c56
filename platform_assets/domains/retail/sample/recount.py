"""One more file after the whole sample: a store counts again and corrects five lines of one day.

It is no part of the sample's truth, so that it can be landed or left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.files import delivered_at, encode, write
from platform_assets.domains.retail.sample.simulation import Simulation
from platform_assets.domains.retail.sample.truth import read_true_lines

LINES = 5
_AFTER_DAYS = 20
_NAME = "recount-1.csv"


@dataclass(frozen=True)
class Recount:
    """A file that corrects a few lines of one day.

    Args:
        path: below the landing root.
        day: of the lines.
        store: that sold them.
    """

    path: str
    day: date
    store: int


def land_recount(simulation: Simulation, landing: Path) -> Recount | None:
    """Write the file, unless it is there already; None where no day has so many lines that nothing else corrects.

    The lines are of one store, on the day nearest to the middle of the sample. Each was sold at twice the price.
    """
    lines = read_true_lines(landing)
    for day in _from_the_middle(simulation):
        chosen = _chosen(lines, day)
        if len(chosen) == LINES:
            path = _path(day)
            if not (landing / path).exists():
                _deliver(landing / path, chosen, day + timedelta(days=_AFTER_DAYS))
            return Recount(path, day, chosen["store_id"][0])
    return None


def _path(day: date) -> str:
    folder = RAW_TRANSACTIONS.source.folder if RAW_TRANSACTIONS.source else RAW_TRANSACTIONS.table
    return f"{folder}/{day + timedelta(days=_AFTER_DAYS)}/{_NAME}"


def _from_the_middle(simulation: Simulation) -> list[date]:
    middle = (simulation.days - 1) // 2
    return [simulation.first + timedelta(days=n) for n in sorted(range(simulation.days), key=lambda n: abs(n - middle))]


def _chosen(lines: pl.LazyFrame, day: date) -> pl.DataFrame:
    """Some lines of the store that has most lines which came on their day and of which no other version exists."""
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
