"""Protected days: what they show is not to change any more but by a person's decision, as where books are closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import check_declaration


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
