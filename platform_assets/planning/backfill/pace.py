"""Whether a backfill may go on now, and how much of it at once: its budget, its hours, its pace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from platform_assets.planning.backfill.plan_file import Budget, Service

UNBOUNDED = 36_500
"""Days of one job where the file bounds them by nothing: how they are cut is the engine's."""
_WARN_PERCENT = 80
_FAR = timedelta(days=400)
"""An end that is further off bounds no backfill."""
_FULL = 0.85
"""Share of the memory for what lives long from which Java collects more than it computes."""
_SLOWER = 2.0
"""How many times the seconds a day of the table's best job make a job too large for the machine."""
_STEPS = 8
"""In so many equal steps a pace grows from nothing to the most days, or to those that a job has by default."""
_USUAL_DAYS = 90


def spent(budget: Budget, seconds: float, size: int, cores: int | None) -> str:
    """What of a budget is used up; empty while nothing is.

    Args:
        budget: of the plan file.
        seconds: computed so far, all sittings together.
        size: bytes staged so far.
        cores: that Spark computes with, where that is known.
    """
    for name, allowed, used in _used(budget, seconds, size, cores):
        if used >= allowed:
            return f"the budget of {allowed:,} {name} is used up ({used:,.2f})"
    return ""


def nearly_spent(budget: Budget, seconds: float, size: int, cores: int | None) -> tuple[str, ...]:
    """What of a budget is used for four fifths or more, though not up: the same words however often it is asked.

    Args:
        budget: of the plan file.
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
    """Whether a moment, in UTC, lies in the hours of a plan; their end does not."""
    if service.hours is None:
        return True
    first, last = (time.fromisoformat(end) for end in service.hours.split("-"))
    at = now.time()
    return first <= at < last if first < last else (at >= first or at < last)


def seconds_left(service: Service, now: datetime) -> float | None:
    """How long it may compute until it has to be staged, in its hours alone; None where nobody set an end.

    Args:
        service: of the plan file.
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


@dataclass(frozen=True)
class Seen:
    """What a job of some days of one table cost the machine.

    Args:
        table: of the days.
        days: that it computed.
        seconds: that it took.
        failed: whether it ended with an error of the machine's: Spark was lost, or had no memory or disk left.
        spilled_bytes: that did not fit into memory and went to disk; 0 where nobody can say.
        full_share: of the memory for what lives long, in use after Java collected last; 0 where nobody can say.
    """

    table: str
    days: int
    seconds: float
    failed: bool = False
    spilled_bytes: int = 0
    full_share: float = 0.0

    @property
    def seconds_per_day(self) -> float:
        """Of a job that computed any."""
        return self.seconds / self.days if self.days else 0.0


@dataclass(frozen=True)
class Pace:
    """How many days a job may have: a little more after each that went well, half after one that did not.

    That is how a link is shared of which nobody knows the width (additive increase, multiplicative decrease): a
    machine's memory is as unknown, and others use it, too.

    Args:
        most: days that the plan file allows for a job.
        days: that the next job may have, from one to `most`.
        best: fewest seconds a day that a job took, by table.
    """

    most: int
    days: int
    best: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, most: int | None, days: int | None = None) -> Pace:
        """As the file allows; or slower, as an earlier sitting ended."""
        bound = most or UNBOUNDED
        return cls(bound, min(max(days or bound, 1), bound))

    def after(self, seen: Seen) -> Pace:
        """The pace of the next job, by what the last one cost."""
        if not seen.days:
            return self
        if self.strain(seen):
            # Half of what it had, not of what it might have had: a bound that no job reached says nothing.
            return replace(self, days=max(min(self.days, seen.days) // 2, 1))
        best = min(self.best.get(seen.table, seen.seconds_per_day), seen.seconds_per_day)
        more = self.days + max(min(self.most, _USUAL_DAYS) // _STEPS, 1)
        return replace(self, days=min(more, self.most), best={**self.best, seen.table: best})

    def strain(self, seen: Seen) -> str:
        """Why a job was too much at once, in words; empty where it was not."""
        if seen.failed:
            return "it failed"
        if seen.spilled_bytes:
            return f"{seen.spilled_bytes:,} bytes did not fit into memory"
        if seen.full_share >= _FULL:
            return f"{seen.full_share:.0%} of Java's memory stayed in use"
        if seen.table in self.best and seen.seconds_per_day > _SLOWER * self.best[seen.table] and seen.days > 1:
            return f"a day took {seen.seconds_per_day:,.1f} s, {self.best[seen.table]:,.1f} s at best"
        return ""


def _used(budget: Budget, seconds: float, size: int, cores: int | None) -> Iterator[tuple[str, Decimal, Decimal]]:
    """What is bounded, by how much, and how much of it is used."""
    money = Decimal(seconds) * (cores or 0) * (budget.price_per_core_hour or 0) / 3600
    used = {"bytes": Decimal(size), "minutes": Decimal(seconds) / 60, "money": money}
    for name, is_used in used.items():
        allowed = getattr(budget, name)
        if allowed is not None:
            yield name, Decimal(allowed), is_used
