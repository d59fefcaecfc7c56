"""Freshness: every expected day is there in time, looked at over the whole calendar and not the newest day alone.

A table whose newest day is current can still have a hole in the middle of last month.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta

from platform_assets.contracts import Contract
from platform_assets.planning.windows import Calendar, between, day_range, ranges
from platform_assets.quality.findings import Finding

RANGES_SHOWN = 5


def overdue_days(
    contract: Contract, published: Collection[date], calendar: Calendar, today: date, delay_days: int = 0
) -> tuple[date, ...]:
    """Return days that should have been published by now and are not, oldest first.

    Args:
        published: days that readers see, empty ones included.
        today: the date in UTC.
        delay_days: how many days after itself a day is delivered.
    """
    newest_due = today - timedelta(days=delay_days + contract.freshness.within_days + 1)
    due = (day for span in calendar.clip(calendar.first, newest_due) for day in day_range(*span))
    present = set(published)
    return tuple(day for day in due if day not in present and contract.expects(day))


def freshness_finding(contract: Contract, overdue: Sequence[date], delay_days: int = 0) -> Finding | None:
    """Return one finding for all overdue days: their number, and the first of them as ranges.

    Args:
        overdue: oldest first.
    """
    if not overdue:
        return None
    within = delay_days + contract.freshness.within_days
    spans = ranges(overdue)
    shown = spans[:RANGES_SHOWN]
    examples = tuple(between(start, end) for start, end in shown)
    hidden = len(overdue) - sum((end - start).days + 1 for start, end in shown)
    rest = f" and {_days(hidden)} more" if hidden else ""
    expected = f"every open day published {f'within {_days(within)} after it ended' if within else 'when it ends'}"
    return Finding(
        check="freshness",
        day=spans[0][0],
        severity=contract.checks.freshness,
        message=f"{contract.name}: {_days(len(overdue))} overdue: {', '.join(examples)}{rest}; expected {expected}",
        expected=expected,
        actual=f"{_days(len(overdue))} overdue",
        examples=examples,
        numbers={"overdue_days": len(overdue)},
    )


def _days(number: int) -> str:
    return f"{number:,} day{'' if number == 1 else 's'}"
