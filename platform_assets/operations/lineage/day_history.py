"""The life of a day: everything that made something of it, kept something from it, or was decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate
from operator import itemgetter

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.operations.lineage.provenance import arrivals_in
from platform_assets.planning.late_queue import late_table
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import ArrivalRecord, DayRecord, EndedHold, Hold, PublicationRecord
from platform_assets.records.manifest import DayContent, change_of


@dataclass(frozen=True)
class Content:
    """What a day was, as far as a release showed it."""

    rows: int
    digest: str


@dataclass(frozen=True)
class Published:
    """A publication that made something of the day.

    Args:
        before: what the day was; None if it had never been computed.
        after: what it became; None if a rollback made it as if it had never been computed.
        record: all that is on record of the day then, the versions of the tables it was made from among it.
        arrivals: files, approvals and withdrawals whose rows entered the raw day.
        restores: publication whose content a rollback put back.
        keys: of which alone rows were computed, while all others were carried over; empty for a whole day.
    """

    head: PublicationRecord
    before: Content | None
    after: Content | None
    record: DayRecord
    arrivals: tuple[ArrivalRecord, ...]
    restores: str
    keys: Mapping[str, tuple[str, ...]]


Event = Published | Hold | EndedHold | LateDecision
"""A publication; a hold that began, or ended; what a person decided about late rows of the day."""


def life_of(platform: Platform, table: str, day: date) -> tuple[tuple[datetime, Event], ...]:
    """Return everything that is on record of a day, each with its moment, oldest first.

    Args:
        table: with a contract, or one that keeps rows aside (refused, late, quarantine).
    """
    published = [*_publications(platform, table, day)]
    if not published:
        table = platform.catalogue[table].name
    # Releases say which publication came first, also where somebody set the clock back between the two.
    moments = accumulate((event.head.created_at for event in published), max)
    timed: list[tuple[datetime, Event]] = [*zip(moments, published, strict=True)]
    timed += [(hold.created_at, hold) for hold in platform.ledger.holds(table) if hold.day == day]
    for ended in platform.ledger.ended_holds(table, day):
        timed += [(ended.hold.created_at, ended.hold), (ended.ended_at, ended)]
    raw = _raw_tables_of(platform, table)
    timed += [
        (decision.created_at, decision)
        for decision in platform.ledger.decisions(LateDecision, as_far_as_readable=True)
        if decision.table in raw and decision.day == day
    ]
    return tuple(sorted(timed, key=itemgetter(0)))


def _publications(platform: Platform, table: str, day: date) -> Iterator[Published]:
    before: Content | None = None
    for record in reversed(platform.ledger.history(table, day)):
        head = platform.ledger.publication(record.publication)
        assert head is not None
        after = Content(record.rows, record.digest) if record.digest else None
        content = change_of(manifest_of(platform.lake, record.publication), table).days[day]
        arrivals = tuple(_arrivals(platform, head, table, content)) if head.arrivals else ()
        yield Published(head, before, after, record, arrivals, content.restores, _keys(content))
        before = after


def _keys(content: DayContent) -> Mapping[str, tuple[str, ...]]:
    return content.scope.keys if content.scope else {}


def _arrivals(platform: Platform, head: PublicationRecord, table: str, content: DayContent) -> Iterator[ArrivalRecord]:
    """Yield arrivals whose rows entered a raw day, as far as the files are still there, and those taken out again."""
    path = platform.lake.table_path(table)
    entered = [path / file.path for file in content.files if file.path not in content.base]
    of_table = [arrival for arrival in head.arrivals if arrival.table == table]
    names = arrivals_in(file for file in entered if file.exists()) if of_table else ()
    yield from (arrival for arrival in of_table if arrival.path in names or arrival.kind == "withdrawal")


def _raw_tables_of(platform: Platform, table: str) -> set[str]:
    """Return raw tables whose rows of a day the table's own day is made from, or keeps waiting."""
    raw: set[str] = set()
    waiting = [contract.name for contract in platform.catalogue if table in (contract.name, late_table(contract.name))]
    while waiting:
        contract = platform.catalogue[waiting.pop()]
        waiting += [read.table for read in contract.inputs]
        raw |= {contract.name} if contract.source else set()
    return raw
