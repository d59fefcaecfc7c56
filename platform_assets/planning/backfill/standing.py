"""How far a backfill is, how fast it goes, and how long it will take yet."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Standing:
    """Where a backfill stands at a moment.

    Args:
        done: days of tables that are staged, or turned out to need nothing.
        days: of tables, all together.
        seconds: computed so far, all sittings together.
        explained_seconds: that were to be expected.
        bytes: staged so far.
        left_alone: days among the done that turned out to need nothing.
        money: that it took so far; None without a price.
    """

    done: int
    days: int
    seconds: float
    explained_seconds: float
    bytes: int
    left_alone: int = 0
    money: Decimal | None = None

    @property
    def staged(self) -> int:
        """Days of tables that are staged."""
        return self.done - self.left_alone

    @property
    def days_per_minute(self) -> float:
        """So far, with the start of Spark."""
        return 60 * self.done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """By what was explained at first, and the further it is, the more by how fast it went."""
        share = self.done / self.days if self.days else 1.0
        explained = max(self.explained_seconds - self.seconds, 0.0)
        by_rate = self.seconds / self.done * (self.days - self.done) if self.done else explained
        return (1 - share) * explained + share * by_rate
