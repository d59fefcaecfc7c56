"""Days on which a source is expected to bring rows, where these are not all days."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import Days, check_declaration

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


@dataclass(frozen=True)
class Weekdays:
    """Expect rows on some days of every week.

    Args:
        days: the names of the days.
    """

    days: tuple[Weekday, ...]

    def __post_init__(self) -> None:
        check_declaration(self, "Weekdays(...)")

    def includes(self, day: date) -> bool:
        """Tell whether rows of a day are expected."""
        return get_args(Weekday)[day.weekday()] in self.days


@dataclass(frozen=True)
class EveryDays:
    """Expect rows every so many days.

    Args:
        days: the distance between two expected days.
        first: one of the expected days; the others are counted from it, in both directions.
    """

    days: Days
    first: date

    def __post_init__(self) -> None:
        check_declaration(self, "EveryDays(...)", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not self.days:
            yield ContractError("EveryDays(0, ...) names no distance.", "Give `days` 1 or more.", field="days")

    def includes(self, day: date) -> bool:
        """Tell whether rows of a day are expected."""
        return (day - self.first).days % self.days == 0
