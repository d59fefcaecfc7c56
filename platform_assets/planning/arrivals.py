"""Effects of arrivals: which raw days count as loaded, which version copies and deletes have, which files are new.

A raw day counts once its source has had the time to deliver it. Rows outside the calendar, or on days whose delivery is
still to come, are not used until then. The order of versions follows from the arrivals alone: a copy that was ingested
first, but is dated later, gets the place of the first file once that arrives. So the result does not depend on the
order of ingestion.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol, TypeVar

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.windows import Calendar, days_in_question, days_later, not_there
from platform_assets.records.history import ArrivalRecord, DayMark
from platform_assets.words import counted, for_shell


class Content(Protocol):
    """Content of a loaded day, which may have no rows."""

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
        newest: the newest arrival date with an ingested file; None before the first.
    """

    calendar: Calendar
    today: date
    newest: date | None = None


def comes_with(contract: Contract, day: date) -> date:
    """Return the arrival date that brings the rows of a day."""
    return days_later(day, contract.delivered_after_days)


def loaded_days(contract: Contract, days: Mapping[date, _Content], delivered: Delivered) -> dict[date, _Content]:
    """Return the days of a raw table that count as loaded, of those that have rows or certainly have none.

    A day counts once anything of the arrival date that brings its rows, or of a later one, was ingested, whatever was
    ingested for other days. With deliveries on change there may never be any, so the date itself is enough.
    """
    return {
        day: content
        for day, content in days.items()
        if day in delivered.calendar and (not content.rows or _had_its_time(contract, day, delivered))
    }


def with_history(days: dict[date, DayMark], first: date) -> dict[date, DayMark]:
    """Return the days of a history, oldest first; rows from before the calendar count on its first day."""
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
    """Return days to load as empty: nothing was expected, or their arrival came without rows.

    Args:
        have: loaded days, with or without rows.
        until: the newest arrival date whose files were listed; all by default.
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
    """Return days before today that should have been delivered and have no file to ingest.

    Args:
        waiting: arrival dates of files that are not ingested yet.
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
    """Return after how many days each table's day is delivered.

    Days of a derived table wait for the slowest of its raw tables.
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


REPLAY = "has the same content as"
"""How a note of an arrival begins that says so."""

DIGITS = 20
"""So many digits of a number in a file's name are compared as a number."""
UNDATED = "brings deletes without "
"""How the note of an arrival begins that has deletes which have found no record yet."""


class Delivery(NamedTuple):
    """Fields of `records.manifest.Arrival` that decide the order of versions."""

    path: str
    origin: str | None
    arrival_date: date
    modified_ns: int
    sha256: str

    @property
    def file(self) -> str:
        """Return the path of the file that brought the rows."""
        return self.origin or self.path


def file_order(path: str) -> str:
    """Return a file's name as a sort key with numbers by value: `part-2` before `part-10`; then the plain name."""
    name = path.rpartition("/")[2]
    return re.sub("[0-9]+", lambda number: number[0].lstrip("0").zfill(DIGITS), name) + "\t" + name


def order_number(delivery: Delivery, order: str | None) -> int:
    """Return the number by which a source orders its files, as `LandingFiles.order` has it; 0 if only names count."""
    if order == "modified":
        return delivery.modified_ns
    if order in (None, "name"):
        return 0
    found = re.search(order, delivery.file.rpartition("/")[2])
    return int(found[1]) if found and found[1] and re.fullmatch("[0-9]{1,18}", found[1]) else -1


def replays(deliveries: Iterable[Delivery], order: str | None = None) -> dict[str, Delivery]:
    """Return, for every arrival with earlier content, the first file with that content, by path.

    Args:
        deliveries: valid arrivals of one table; those of waiting rows have the content of their file.
    """
    alike: defaultdict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        alike[delivery.sha256].append(delivery)
    found: dict[str, Delivery] = {}
    for same in alike.values():
        files = [delivery for delivery in same if delivery.origin is None]
        if len(files) > 1:
            first = min(files, key=lambda f: (f.arrival_date, order_number(f, order), file_order(f.path)))
            found |= {delivery.path: first for delivery in same if delivery.file != first.path}
    return found


def replay_notes(replayed: Mapping[str, Delivery], path: str) -> Iterator[str]:
    """Return notes that a file's content came before, or that others have its place."""
    if first := replayed.get(path):
        yield (
            f"{REPLAY} {first.path}, which arrived on {first.arrival_date}: its rows keep that place in the order of "
            f"versions; if they are meant anew, `platform-assets undo {for_shell(first.path)} --reason …`"
        )
    for copy in (copy for copy, first in replayed.items() if first.path == path):
        yield f"{REPLAY} {copy}, whose rows keep the place of this file in the order of versions"


def waiting_note(contract: Contract, keys: int) -> str:
    """Return a note on how many keys of an arrival's deletes match no record yet."""
    lack = f"{UNDATED}{contract.event_time}: {counted(keys, 'key')} of them without a record"
    return f"{lack} within {counted(contract.restatement_window_days, 'day')}, for which they wait"


@dataclass(frozen=True)
class RawDay:
    """A raw day that changed since the last good content was computed from it.

    Args:
        since: newest release that still shows the version that was read; -1 if none was read.
    """

    table: str
    day: date
    since: int
    arrivals: Collection[str]


def new_arrivals(
    days: Iterable[RawDay], arrivals: Iterable[ArrivalRecord], released: Mapping[str, int]
) -> tuple[ArrivalRecord, ...]:
    """Return arrivals that are new on some raw days and still count, newest first."""
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
