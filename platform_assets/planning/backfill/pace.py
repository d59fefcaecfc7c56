"""Whether a backfill may go on now, by its budget and its hours; how far it is, and how long it will take yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from platform_assets.planning.backfill.plan_file import Budget, Service

_WARN_PERCENT = 80
_FAR = timedelta(days=400)
"""An end that is further off bounds no backfill."""


def spent(budget: Budget, seconds: float, size: int, cores: int | None) -> str:
    """Return what of a budget is used up; empty while nothing is.

    Args:
        seconds: computed so far, all sittings together.
        size: bytes staged so far.
        cores: that Spark computes with, where that is known.
    """
    for name, allowed, used in _used(budget, seconds, size, cores):
        if used >= allowed:
            return f"the budget of {allowed:,} {name} is used up ({used:,.2f})"
    return ""


def nearly_spent(budget: Budget, seconds: float, size: int, cores: int | None) -> tuple[str, ...]:
    """Return what of a budget is used for four fifths or more, though not up: the same words however often it is asked.

    Args:
        seconds: computed so far, all sittings together.
        size: bytes staged so far.
        cores: that Spark computes with, where that is known.
    """
    return tuple(
        f"{_WARN_PERCENT} % of the budget of {allowed:,} {name} are used"
        for name, allowed, used in _used(budget, seconds, size, cores)
        if allowed * _WARN_PERCENT / 100 <= used < allowed
    )


def may_compute(service: Service, now: datetime) -> bool:
    """Return whether a moment, in UTC, lies in the hours of a plan; their end does not."""
    if service.hours is None:
        return True
    first, last = (time.fromisoformat(end) for end in service.hours.split("-"))
    at = now.time()
    return first <= at < last if first < last else (at >= first or at < last)


def seconds_left(service: Service, now: datetime) -> float | None:
    """Return how long it may compute until it has to be staged, in its hours alone; None where nobody set an end.

    Args:
        now: in UTC.
    """
    if service.until is None:
        return None
    end = min(datetime.fromisoformat(service.until).replace(tzinfo=UTC), now + _FAR)
    if service.hours is None:
        return max((end - now).total_seconds(), 0.0)
    first, last = (time.fromisoformat(text) for text in service.hours.split("-"))
    left = 0.0
    for number in range(-1, (end - now).days + 2):
        day = now.date() + timedelta(number)
        opens, closes = (datetime.combine(day, at, UTC) for at in (first, last))
        closes += timedelta(last < first)
        left += max((min(closes, end) - max(opens, now)).total_seconds(), 0.0)
    return left


def _used(budget: Budget, seconds: float, size: int, cores: int | None) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield what is bounded, by how much, and how much of it is used."""
    money = Decimal(seconds) * (cores or 0) * (budget.price_per_core_hour or 0) / 3600
    used = {"bytes": Decimal(size), "minutes": Decimal(seconds) / 60, "money": money}
    for name, is_used in used.items():
        allowed = getattr(budget, name)
        if allowed is not None:
            yield name, Decimal(allowed), is_used


@dataclass(frozen=True)
class Standing:
    """Where a backfill stands at a moment.

    Args:
        done: days of tables that are staged, or turned out to need nothing.
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
        """Return days of tables that are staged."""
        return self.done - self.left_alone

    @property
    def days_per_minute(self) -> float:
        """Return the rate so far, with the start of Spark."""
        return 60 * self.done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """Estimate by what was explained at first, and the further it is, the more by how fast it went."""
        share = self.done / self.days if self.days else 1.0
        explained = max(self.explained_seconds - self.seconds, 0.0)
        by_rate = self.seconds / self.done * (self.days - self.done) if self.done else explained
        return (1 - share) * explained + share * by_rate
