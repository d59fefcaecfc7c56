"""Special days of a table: days with expected rows, and days protected from changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

from platform_assets.contracts.errors import ContractError, Days, check_declaration

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
        """Return whether rows of a day are expected."""
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
        """Return whether rows of a day are expected."""
        return (day - self.first).days % self.days == 0


@dataclass(frozen=True)
class Protected:
    """Protect days of a raw table, and of all tables computed from it, from changes without a decision.

    Args:
        first: first day.
        last: last day, included.
        since: rows that arrive after this date wait in the late queue, however few days late they are.
        reason: why the days are protected.
    """

    first: date
    last: date
    since: date
    reason: str

    def __post_init__(self) -> None:
        check_declaration(self, "Protected(first, last, since, reason)", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not self.first <= self.last <= self.since:
            yield ContractError(
                f"Protected days from {self.first} to {self.last}, since {self.since}, are in no order.",
                "Give the older day first, and protect them since the last day or later.",
                field="protected",
            )
        if not self.reason.strip():
            yield ContractError(f"Days from {self.first} are protected for no reason.", "Say why.", field="protected")

    def has_day(self, day: date) -> bool:
        """Return whether a day is among them."""
        return self.first <= day <= self.last


def why_protected(periods: tuple[Protected, ...], day: date) -> str:
    """Return the reason why a day is protected; empty for one that is not."""
    return next((period.reason for period in periods if period.has_day(day)), "")
