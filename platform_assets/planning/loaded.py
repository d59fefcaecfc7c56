"""Which days of a raw table count as loaded: those that its source has had the time to deliver.

Rows may lie on days outside the calendar, or on days whose delivery is still to come. They are of no use until then, so
that it makes no difference when the files were taken: the end is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeVar

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.days_on_demand import days_in_question, not_there
from platform_assets.planning.windows import Calendar, days_later
from platform_assets.records.history import DayMark


class Content(Protocol):
    """What is known of a day that has rows, or that is known to have none."""

    @property
    def rows(self) -> int:
        """Return the number of rows of the whole content."""
        ...


_Content = TypeVar("_Content", bound=Content)


@dataclass(frozen=True)
class Delivered:
    """How far the deliveries for a raw table have come.

    Args:
        today: the date in UTC.
        newest: the newest arrival date of which a file was taken; None before the first.
    """

    calendar: Calendar
    today: date
    newest: date | None = None


def comes_with(contract: Contract, day: date) -> date:
    """Return the arrival date with which the rows of a day come."""
    return days_later(day, contract.delivered_after_days)


def loaded_days(contract: Contract, days: Mapping[date, _Content], delivered: Delivered) -> dict[date, _Content]:
    """Return the days of a raw table that count as loaded, of those that have rows or are known to have none.

    A day counts once anything of the arrival date that brings its rows, or of a later one, was taken: which files of
    other days have been taken by then makes no difference. Where deliveries come on change alone, there may never be
    any, so that the date itself has to do.
    """
    return {
        day: content
        for day, content in days.items()
        if day in delivered.calendar and (not content.rows or _had_its_time(contract, day, delivered))
    }


def with_history(days: dict[date, DayMark], first: date) -> dict[date, DayMark]:
    """Return the days of a history, oldest first, with rows from before the calendar counted on its first day."""
    opening = [mark for day, mark in days.items() if day <= first and mark.rows]
    if first not in days or all(mark.day == first for mark in opening):
        return days
    digests = "".join(f"{mark.day}={mark.digest}," for mark in opening)
    whole = days[first]._replace(
        digest=hashlib.sha256(digests.encode()).hexdigest()[:32],
        rows=sum(mark.rows for mark in opening),
        release=max(mark.release for mark in (days[first], *opening)),
    )
    return {**days, first: whole}


def empty_days(
    contract: Contract,
    have: Collection[date],
    arrivals: Collection[date],
    delivered: Delivered,
    until: date | None = None,
) -> tuple[date, ...]:
    """Days to load as empty: nothing was to be expected on them, or what brings their rows came without any.

    Args:
        have: days that have rows, or are known to have none.
        until: the newest arrival date of which files were looked for; all by default.
    """

    def is_empty(day: date) -> bool:
        if not contract.expects(day):
            return until is None or day <= until
        came = comes_with(contract, day)
        if until is not None and came > until:
            return False
        return came <= delivered.today if contract.delivers == "on change" else came in arrivals

    return tuple(day for day in not_there(have, delivered.calendar) if is_empty(day))


def missing_days(
    contract: Contract,
    have: Mapping[date, Content],
    waiting: Collection[date],
    empty: Collection[date],
    delivered: Delivered,
) -> tuple[date, ...]:
    """Days that should have been delivered before today, and of which nothing is there that could be taken.

    Args:
        have: days that have rows, or are known to have none.
        waiting: arrival dates of files that are not taken yet.
        empty: days that are to be loaded as empty.
    """
    asked = days_in_question(have, delivered.calendar)
    loaded = loaded_days(contract, {day: have[day] for day in asked if day in have}, delivered)
    newest = max(waiting, default=date.min)

    def is_missing(day: date) -> bool:
        came = comes_with(contract, day)
        is_coming = came in waiting or (day in have and came <= newest)
        return came < delivered.today and day not in loaded and day not in empty and not is_coming

    return tuple(day for day in asked if is_missing(day))


def delays(catalogue: Catalogue) -> dict[str, int]:
    """Return how many days after itself a day of each table is delivered.

    Those of a derived table wait for the slowest of the raw tables that they are made from.
    """
    by_table: dict[str, int] = {}
    for contract in catalogue:
        inputs = [by_table[read.table] for read in contract.inputs]
        by_table[contract.name] = max(inputs, default=contract.delivered_after_days)
    return by_table


def _had_its_time(contract: Contract, day: date, delivered: Delivered) -> bool:
    came = comes_with(contract, day)
    if contract.delivers == "on change":
        return came <= delivered.today
    return not contract.expects(day) or (delivered.newest is not None and came <= delivered.newest)
