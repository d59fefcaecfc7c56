"""Whether a backfill may go on now: its budget and its hours."""

from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal

from platform_assets.planning.backfill.plan_file import Budget, Service


def spent(budget: Budget, seconds: float, size: int, cores: int | None) -> str:
    """What of a budget is used up; empty while nothing is.

    Args:
        budget: of the plan file.
        seconds: computed so far, all sittings together.
        size: bytes staged so far.
        cores: that Spark computes with, where that is known.
    """
    money = Decimal(seconds) * (cores or 0) * (budget.price_per_core_hour or 0) / 3600
    used = {"bytes": Decimal(size), "minutes": Decimal(seconds) / 60, "money": money}
    for name, is_used in used.items():
        allowed = getattr(budget, name)
        if allowed is not None and is_used >= Decimal(allowed):
            return f"the budget of {allowed:,} {name} is used up ({is_used:,.2f})"
    return ""


def may_compute(service: Service, now: datetime) -> bool:
    """Whether a moment, in UTC, lies in the hours of a plan; their end does not."""
    if service.hours is None:
        return True
    first, last = (time.fromisoformat(end) for end in service.hours.split("-"))
    at = now.time()
    return first <= at < last if first < last else (at >= first or at < last)
