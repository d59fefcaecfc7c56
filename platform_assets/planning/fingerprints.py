"""Fingerprints: hashes of a day's inputs, then or now."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from datetime import date
from itertools import accumulate
from typing import cast

from platform_assets.contracts import AllHistory, AsOf, Contract, MonthToDate, Offsets, Span
from platform_assets.planning.windows import (
    Calendar,
    day_range,
    days_around,
    days_read,
    not_there,
    ranges_read,
    union_read,
)

Digests = Mapping[str, Mapping[date, str]]
"""The digest of every loaded day, by table."""

View = Mapping[date, str]
"""The digest of what of an effective-dated table is valid, at every day on which that changes, oldest first."""

Views = Mapping[str, View]
"""The view of every table that is read as of a day."""

_ALONE = (AsOf(), Span(0, 0))
"""Windows through which a day reads no other day."""


def fingerprints(
    contract: Contract, days: Collection[date], digests: Digests, calendar: Calendar, views: Views
) -> dict[date, str]:
    """Return for each day a hash of the digests of every input day that it reads through the declared windows.

    For an input read as of the day, only rows valid on the day count. Next to an input read through several days, rows
    valid on any of these count, since their rows may be joined as of their own day.

    Args:
        digests: digests of the inputs, from the versions that are read.
        views: views of the inputs that are read as of a day, from the versions that are read.

    Returns:
        One fingerprint per day whose inputs are loaded; a day that reads a day never loaded is missing. Loaded and
        empty counts as loaded.
    """
    hashes: dict[date, hashlib._Hash] = {day: hashlib.sha256(contract.name.encode()) for day in days}
    for read in contract.inputs:
        have = digests.get(read.table, {})
        parts: Mapping[date, str]
        match read.window:
            case AsOf():
                since = {day: joined_since(contract, day, calendar) for day in hashes}
                parts = _valid(have, calendar, since, views.get(read.table, {}))
            case AllHistory():
                parts = _running(have, calendar, max(hashes, default=calendar.first))
            case Offsets() as window:
                parts = _chosen(have, calendar, hashes, window)
            case window:
                parts = _joined(have, calendar, hashes, window)
        for day in list(hashes):
            if (part := parts.get(day)) is None:
                del hashes[day]
            else:
                hashes[day].update(f"|{read.table}|{part}".encode())
    return {day: value.hexdigest()[:32] for day, value in hashes.items()}


def joined_since(contract: Contract, day: date, calendar: Calendar) -> date:
    """Return the earliest as-of day for a day's joins: the first day that it reads of any other input."""
    windows = [read.window for read in contract.inputs if read.window not in _ALONE]
    return min((first for window in windows for first, _ in ranges_read(window, day, calendar)), default=day)


def valid_on(view: View, days: Mapping[date, date]) -> dict[date, str]:
    """Return digests of the rows valid on each of some days, or since an earlier day; empty before the first row.

    Args:
        days: for each day the earliest as-of day of its joins, mostly the day itself.

    Returns:
        The digest of the rows valid on the first of them, then those of each change up to the day, with its day.
    """
    changes = list(view)
    digests: dict[date, str] = {}
    for day, since in days.items():
        first, last = bisect_right(changes, min(since, day)), bisect_right(changes, day)
        valid = view[changes[first - 1]] if first else ""
        digests[day] = "".join([valid, *(f",{change}={view[change]}" for change in changes[first:last])])
    return digests


def _valid(have: Mapping[date, str], calendar: Calendar, since: Mapping[date, date], view: View) -> dict[date, str]:
    """Return for each day what is valid on it, or since another day, up to the first day that was never loaded."""
    unknown = next(iter(not_there(have, calendar)), date.max)
    return valid_on(view, {day: first for day, first in since.items() if day < unknown})


def _chosen(have: Mapping[date, str], calendar: Calendar, days: Collection[date], window: Offsets) -> dict[date, str]:
    """Return for each day the digests of its chosen days, unless one of them was never loaded."""
    asked = {day: tuple(days_read(window, day, calendar)) for day in days if day in calendar}
    return {
        day: ",".join(f"{read}={have[read]}" for read in chosen)
        for day, chosen in asked.items()
        if all(have.get(read) is not None for read in chosen)
    }


def _joined(
    have: Mapping[date, str], calendar: Calendar, days: Collection[date], window: Span | MonthToDate
) -> dict[date, str]:
    """Return for each day the digests of all days that it reads, unless one of them was never loaded."""
    parts: dict[date, str] = {}
    # If the clock is behind, held days may be outside the calendar.
    asked = sorted(day for day in days if day in calendar)
    every = len(asked) == len(calendar.days())
    spans = ((calendar.first, calendar.last),) if every else union_read(window, asked, calendar)
    for first, last in spans:
        # Places in a list instead of dates: of ten years, every day of every table may come by here.
        digests = [have.get(day) for day in day_range(first, last)]
        lacking = list(accumulate((digest is None for digest in digests), initial=0))
        for day in asked[bisect_left(asked, first) : bisect_right(asked, last)]:
            before, after = days_around(window, day)
            place = day.toordinal() - first.toordinal()
            start, end = max(place - before, 0), min(place + after + 1, len(digests))
            if lacking[end] == lacking[start]:
                parts[day] = ",".join(cast("list[str]", digests[start:end]))
    return parts


def _running(have: Mapping[date, str], calendar: Calendar, until: date) -> dict[date, str]:
    """Return for each day the hash of all days up to it, ending before the first that was never loaded."""
    total = hashlib.sha256()
    parts: dict[date, str] = {}
    for day in day_range(calendar.first, until):
        if day not in have:
            break
        total.update(f"{day}={have[day]},".encode())
        parts[day] = total.hexdigest()
    return parts
