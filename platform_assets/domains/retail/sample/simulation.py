"""What is simulated: how much goes wrong, which days, how many lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from datetime import date, timedelta

from platform_assets.errors import PlatformError

SOURCE_FIRST = date(2017, 1, 1)
SOURCE_LAST = date(2018, 1, 1)
LATEST_DAYS = 90
"""No version of a line arrives more than this many days after its day: the restatement window of the contract."""


class SampleError(PlatformError):
    """The sample cannot be simulated or landed."""


class OtherSampleError(SampleError):
    """The landing area already holds a sample with other parameters."""


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
        rates: how much goes wrong.
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
