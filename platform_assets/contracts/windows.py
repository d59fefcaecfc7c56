"""Read windows: which days of an input one day of a table reads.

Only the declarations are here. Their meaning for filters and invalidation is computed in
`platform_assets.planning.windows`, from these values alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from platform_assets.contracts.errors import ContractError, Days, check_declaration

Distance = Annotated[int, Field(ge=-36_500, le=36_500)]
"""A number of days or years from a day, negative before it."""


@dataclass(frozen=True)
class Span:
    """The days from `before` days earlier to `after` days later, both included."""

    before: Days
    after: Days

    def __post_init__(self) -> None:
        check_declaration(self, "A read window of span(before, after)")


@dataclass(frozen=True)
class Offsets:
    """Chosen days: each so many days, or years, from the day; negative is before it.

    29 February has no same date in most years and reads nothing of these, so that no day counts twice.
    """

    each: tuple[Distance, ...]
    unit: Literal["days", "years"] = "days"

    def __post_init__(self) -> None:
        check_declaration(self, "A read window of offsets(...) or same_date(...)", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        wrong = {
            ("names a distance twice", "Name each once."): len(set(self.each)) < len(self.each),
            ("names nothing", "Name what a day reads, as in offsets(-365, -1)."): not self.each,
            ("names more than 60", "Read a range of days through span(before, after)."): len(self.each) > 60,
            ("is the day itself", "Write same_day()."): self.each == (0,),
            ("reaches over more than 100 years", "Name years from -100 to 100."): self.unit == "years"
            and max(map(abs, self.each), default=0) > 100,
        }
        for (what, todo), is_so in wrong.items():
            if is_so:
                yield ContractError(f"A read window of {self.unit} {self.each} {what}.", todo, field="each")


@dataclass(frozen=True)
class MonthToDate:
    """The days from the first of the month to the day itself."""


@dataclass(frozen=True)
class AsOf:
    """Effective-dated input: for each key its newest row on or before the day."""


@dataclass(frozen=True)
class AllHistory:
    """Every day up to and including the day itself."""


Window = Span | Offsets | MonthToDate | AsOf | AllHistory


def same_day() -> Span:
    """Read only the day itself."""
    return Span(0, 0)


def span(before: int, after: int = 0) -> Span:
    """Read the days around the day: `span(27)` is the trailing 28 days, the day included."""
    return Span(before, after)


def offsets(*days: int) -> Offsets:
    """Read only these days: `offsets(0, -364)` is the day and the same weekday a year before."""
    return Offsets(days)


def same_date(*years: int) -> Offsets:
    """Read only the same date of these years: `same_date(0, -1)` is the day and its date a year before."""
    return Offsets(years, "years")


def month_to_date() -> MonthToDate:
    """Read from the first of the day's month to the day."""
    return MonthToDate()


def as_of() -> AsOf:
    """Read the rows of the input that were valid on the day."""
    return AsOf()


def all_history() -> AllHistory:
    """Read everything up to the day."""
    return AllHistory()
