"""Read windows: which days of an input one day of a table reads.

Only the declarations live here. What they mean for filters and for invalidation is computed in
`platform_assets.planning.windows`, from these values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from platform_assets.contracts.fields import Days
from platform_assets.contracts.mistakes import check_declaration


@dataclass(frozen=True)
class Span:
    """The days from `before` days earlier to `after` days later, both included."""

    before: Days
    after: Days

    def __post_init__(self) -> None:
        check_declaration(self, "A read window of span(before, after)")


@dataclass(frozen=True)
class MonthToDate:
    """The days from the first of the month to the day itself."""


@dataclass(frozen=True)
class AsOf:
    """Effective-dated input: for each key its newest row on or before the day."""


@dataclass(frozen=True)
class AllHistory:
    """Every day up to and including the day itself."""


Window = Span | MonthToDate | AsOf | AllHistory


def same_day() -> Span:
    """Only the day itself."""
    return Span(0, 0)


def span(before: int, after: int = 0) -> Span:
    """The days around the day: `span(27)` is the trailing 28 days, the day included."""
    return Span(before, after)


def month_to_date() -> MonthToDate:
    """From the first of the day's month to the day."""
    return MonthToDate()


def as_of() -> AsOf:
    """The input as it was valid on the day."""
    return AsOf()


def all_history() -> AllHistory:
    """Everything up to the day."""
    return AllHistory()
