"""Which published days are verified, and how they come out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Literal

from platform_assets.planning.sampling import days_to_verify
from platform_assets.records.digest import Digest

Verdict = Literal["equal", "different", "not verifiable"]


@dataclass(frozen=True)
class Verified:
    """One published day.

    Args:
        day: event date.
        verdict: how it came out.
        reason: what differs, or why it cannot be verified; empty if it is equal.
        expected: digest that was published.
        found: digest of what differs from it; None if it is equal or was not computed.
        examples: the first keys that differ, and in which columns, sensitive values masked.
    """

    day: date
    verdict: Verdict
    reason: str
    expected: Digest
    found: Digest | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableVerified:
    """The days of one table that were looked at, oldest first."""

    table: str
    days: tuple[Verified, ...]

    def of(self, verdict: Verdict) -> tuple[Verified, ...]:
        """The days that came out so."""
        return tuple(day for day in self.days if day.verdict == verdict)


@dataclass(frozen=True)
class Choice:
    """Which published days to verify.

    Args:
        tables: names.
        days: these; None for a sample.
        sample: of the sample, how many days to draw besides the newest.
        seed: the same one draws the same days.
    """

    tables: Collection[str]
    days: frozenset[date] | None = None
    sample: int = 3
    seed: int = 0

    def of(self, published: Collection[date]) -> tuple[date, ...]:
        """The days of a table to look at, oldest first."""
        if self.days is None:
            return days_to_verify(published, self.sample, self.seed)
        return tuple(sorted(self.days & set(published)))
