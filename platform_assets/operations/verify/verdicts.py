"""How published days come out that are verified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

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
        actual: digest of what differs from it; None if it is equal or was not computed.
        examples: the first keys that differ, and in which columns, sensitive values masked.
    """

    day: date
    verdict: Verdict
    reason: str
    expected: Digest
    actual: Digest | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableVerified:
    """The days of one table that were looked at, oldest first."""

    table: str
    days: tuple[Verified, ...]

    def of(self, verdict: Verdict) -> tuple[Verified, ...]:
        """The days that came out so."""
        return tuple(day for day in self.days if day.verdict == verdict)
