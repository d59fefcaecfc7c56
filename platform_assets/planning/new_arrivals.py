"""Which arrivals may be to blame for what a day would become: those that came since its last good content was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from platform_assets.records.history import ArrivalRecord


@dataclass(frozen=True)
class RawDay:
    """A raw day that is no longer as the last good content was made from it.

    Args:
        since: the newest release that still shows what was read of it; -1 where nothing was.
        arrivals: paths of those whose rows lie in it now.
    """

    table: str
    day: date
    since: int
    arrivals: Collection[str]


def new_arrivals(
    days: Iterable[RawDay], arrivals: Iterable[ArrivalRecord], released: Mapping[str, int]
) -> tuple[ArrivalRecord, ...]:
    """Return the arrivals that are new on some raw days and still count, newest first.

    Args:
        days: that differ from what was read of them.
    """
    records = tuple(arrivals)
    withdrawn = {(record.table, record.origin) for record in records if record.kind == "withdrawal"}
    since: dict[tuple[str, str], int] = {}
    for day in days:
        for path in day.arrivals:
            since[day.table, path] = min(day.since, since.get((day.table, path), day.since))
    new = [
        record
        for record in records
        if record.taken
        and record.kind != "withdrawal"
        and (key := (record.table, record.path)) in since
        and key not in withdrawn
        and released.get(record.publication, -1) > since[key]
    ]
    return tuple(sorted(new, key=lambda record: (-released[record.publication], record.table, record.path)))
