"""The sample played through: the truth of each stretch of days, and the deliveries that are complete by its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.fates import versions
from platform_assets.domains.retail.sample.files import file_of_line
from platform_assets.domains.retail.sample.malformations import named, with_spoiled_values
from platform_assets.domains.retail.sample.simulation import Simulation
from platform_assets.domains.retail.sample.source import copy_of, with_money

STRETCH_DAYS = 30
TRUTH_COLUMNS = (*RAW_TRANSACTIONS.column_names, DAY, "arrival_date", "kind", "malformation")
"""A true version of a till line, the day it belongs to, when it first arrives, what kind of version it is, and how it
arrives broken if it does."""


@dataclass(frozen=True)
class Stretch:
    """Some days of the sample.

    Args:
        truth: every version of the lines sold on these days, in `TRUTH_COLUMNS`.
        delivered: rows as delivered, of all arrival dates that are complete now: the contract's columns,
            `arrival_date`, `file`, `kind` and `malformation`, in the order in which they lie in their files.
    """

    truth: pl.DataFrame
    delivered: pl.DataFrame


def play(simulation: Simulation, lines: pl.DataFrame, start: date, end: date) -> Iterator[Stretch]:
    """Play the sales of some days, oldest first, holding no more than a stretch and what is still on its way.

    Args:
        lines: the source's lines of at least these days.
        start: first day of sales to play; arrivals are whole from 91 days later on, or where it is the sample's first.
        end: last day of sales to play; where it is the sample's last, its latest arrivals come with the last stretch.
    """
    on_its_way: list[pl.DataFrame] = []
    while start <= end:
        until = min(start + timedelta(days=STRETCH_DAYS - 1), end)
        sold = lines.filter(pl.col(DAY).is_between(start, until))
        made = pl.concat(
            [versions(copy_of(sold, number), simulation, number) for number in range(simulation.scale)]
        ).with_columns(file=file_of_line(simulation.last))
        made = with_money(named(made))
        on_its_way.append(_deliveries(made, simulation))
        waiting = pl.concat(on_its_way)
        complete = pl.col("arrival_date") <= until if until < simulation.last else pl.lit(True)
        on_its_way = [waiting.filter(~complete)]
        yield Stretch(made.select(TRUTH_COLUMNS), _in_files(waiting.filter(complete)))
        start = until + timedelta(days=1)


def _deliveries(made: pl.DataFrame, simulation: Simulation) -> pl.DataFrame:
    """Every version once, and the duplicates with their own arrival date and file."""
    again = made.filter(pl.col("_again").is_not_null()).with_columns(arrival_date=pl.col("_again"))
    return pl.concat([made, again.with_columns(file=file_of_line(simulation.last))]).drop("_again")


def _in_files(rows: pl.DataFrame) -> pl.DataFrame:
    order = ("arrival_date", "file", "updated_at", "basket_id", "product_id")
    return with_spoiled_values(rows.sort(order)).drop(DAY)
