"""History of a day: its publications, holds and decisions; and rollbacks that end.

A rollback holds its days until their inputs change, so one unrelated row ends it. The person who rolled back gets a
notice: before it happens in a plan's report, and afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate
from operator import itemgetter

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.operations.lineage.provenance import NewSince, arrivals_in
from platform_assets.planning.rollback import TableDay
from platform_assets.planning.rows_aside import late_table
from platform_assets.planning.windows import which
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import (
    COMPACTION,
    ERASURE,
    ROLL_BACK,
    ArrivalRecord,
    DayRecord,
    EndedHold,
    Hold,
    PublicationRecord,
)
from platform_assets.records.manifest import DayContent, change_of
from platform_assets.words import counted


@dataclass(frozen=True)
class Content:
    """Content of a day in a release."""

    rows: int
    digest: str


@dataclass(frozen=True)
class Published:
    """A publication that changed the day.

    Args:
        before: its content before; None if it had never been computed.
        after: its new content; None if a rollback made it as if never computed.
        record: the day's full record, with the input versions.
        arrivals: files, approvals and withdrawals whose rows entered the raw day.
        restores: publication whose content a rollback restored.
        keys: keys that alone were computed; empty for a whole day.
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
    """Return everything on record about a day, each with its time, oldest first.

    Args:
        table: a table with a contract, or one that keeps rows aside (refused, late, quarantine).
    """
    published = [*_publications(platform, table, day)]
    if not published:
        table = platform.catalogue[table].name
    # Releases give the order of publications even if the clock was set back between them.
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
        keys = content.scope.keys if content.scope else {}
        yield Published(head, before, after, record, arrivals, content.restores, keys)
        before = after


def _arrivals(platform: Platform, head: PublicationRecord, table: str, content: DayContent) -> Iterator[ArrivalRecord]:
    """Yield arrivals whose rows entered a raw day, if their files still exist, and withdrawn ones."""
    path = platform.lake.table_path(table)
    entered = [path / file.path for file in content.files if file.path not in content.base]
    of_table = [arrival for arrival in head.arrivals if arrival.table == table]
    names = arrivals_in(file for file in entered if file.exists()) if of_table else ()
    yield from (arrival for arrival in of_table if arrival.path in names or arrival.kind == "withdrawal")


def _raw_tables_of(platform: Platform, table: str) -> set[str]:
    """Return raw tables whose rows of a day enter the table's own day, or wait for it."""
    raw: set[str] = set()
    waiting = [contract.name for contract in platform.catalogue if table in (contract.name, late_table(contract.name))]
    while waiting:
        contract = platform.catalogue[waiting.pop()]
        waiting += [read.table for read in contract.inputs]
        raw |= {contract.name} if contract.source else set()
    return raw


_LOOKED_AT = 10
"""Days of a rollback whose files are looked up: that opens files of raw days."""

_SHOWN = 3
"""Files that are named."""


@dataclass(frozen=True)
class EndedRollback:
    """Rolled-back days, and how their rollback ends or ended.

    Args:
        files: new files in their inputs since then, newest first.
        by: publication that recomputed them; None while there is none.
        withdrawn: files among their inputs that were withdrawn since.
        counts: whether they differ from the restored content in more than these files, or that is unknown.
    """

    table: str
    days: tuple[date, ...]
    rollback: PublicationRecord
    files: tuple[str, ...] = ()
    by: PublicationRecord | None = None
    withdrawn: tuple[str, ...] = ()
    counts: bool = True

    @property
    def name(self) -> str:
        """Return a name for the rollback, with its days."""
        made = f"release {self.rollback.release}, {self.rollback.who}: {self.rollback.why}"
        return f"the rollback of {counted(len(self.days), 'day')} of {self.table} ({which(self.days)}; {made})"

    @property
    def is_done(self) -> bool:
        """Return whether it ends only because its files were withdrawn, so that no person has to look."""
        return bool(self.withdrawn) and not self.counts

    @property
    def sentence(self) -> str:
        """Return the full sentence."""
        ends = "ended" if self.by else "ends once that is computed,"
        it = "it" if len(self.days) == 1 else "them"
        if self.is_done:
            needs, then = ("was no longer needed", "were") if self.by else ("is no longer needed", "are")
            without = "it" if len(self.withdrawn) == 1 else "them"
            return f"{_gone(self.withdrawn)}, so {self.name} {needs}: its days {then} computed without {without}"
        if self.files:
            return f"{self.name} {ends} because {_named(self.files)} changed {it}; what it had taken back counts again"
        if self.withdrawn:
            rest = "what it had taken back and was not withdrawn counts again"
            return f"{self.name} {ends} because {_gone(self.withdrawn)}; {rest}"
        if self.by:
            return f"{self.name} ended with release {self.by.release} by {self.by.who}: {self.by.why}"
        return f"{self.name} ends once that is computed; no file is new since"


def _gone(files: Sequence[str]) -> str:
    return f"{_named(files)} {'was' if len(files) == 1 else 'were'} withdrawn"


def _named(files: Sequence[str]) -> str:
    more = f" and {counted(len(files) - _SHOWN, 'other file')}" if len(files) > _SHOWN else ""
    return f"{', '.join(files[:_SHOWN])}{more}"


def ending_rollbacks(platform: Platform, planned: Mapping[str, Collection[date]]) -> tuple[EndedRollback, ...]:
    """Return rollbacks that a plan ends."""
    standing = [hold for hold in platform.ledger.holds() if hold.day in planned.get(hold.table, ())]
    return _ended(platform, _put_back(standing), computed=False)


def ended_rollbacks(platform: Platform, stood: Iterable[Hold]) -> tuple[EndedRollback, ...]:
    """Return rollbacks that held days before and no longer do, because the days were computed."""
    gone = _put_back(stood)
    gone -= _put_back(platform.ledger.holds()) if gone else set()
    return _ended(platform, gone, computed=True)


def rollback_of(platform: Platform, table: str, day: date, *, stale: bool) -> EndedRollback | None:
    """Return the rollback that ended when a day was computed, or ends once it is."""
    stands = (table, day) in _put_back(platform.ledger.holds(table))
    if stands and not stale:
        return None
    # A day that went back with all that it is made from is not held: what was taken back stays so there.
    held = {ended.hold.run for ended in platform.ledger.ended_holds(table, day) if ended.hold.is_of_good_content}
    if not stands and not held:
        return None
    found = next(iter(_ended(platform, {(table, day)}, computed=not stands)), None)
    return found if found and (stands or found.rollback.run in held) else None


def standing_rollbacks(platform: Platform, tables: Collection[str]) -> tuple[EndedRollback, ...]:
    """Return the rollbacks that hold days of some tables; what ends them is not known yet."""
    held = {key for key in _put_back(platform.ledger.holds()) if key[0] in tables}
    return _ended(platform, held, computed=False, with_files=False)


def _put_back(holds: Iterable[Hold]) -> set[TableDay]:
    """Return days whose rollback new input can end."""
    return {(hold.table, hold.day) for hold in holds if hold.is_of_good_content and not hold.lasts}


def _ended(
    platform: Platform, days: Collection[TableDay], *, computed: bool, with_files: bool = True
) -> tuple[EndedRollback, ...]:
    """Return the rolled-back days among some, grouped by what is to be said of them.

    Args:
        computed: publications that computed some of them since, with the days; others are as restored.
    """
    ledger = platform.ledger
    rollbacks = {head.publication: head for head in ledger.heads(ROLL_BACK)} if days else {}
    if not rollbacks:
        return ()
    not_computed = {head.publication for kind in (COMPACTION, ERASURE) for head in ledger.heads(kind)}
    by_table: dict[str, list[date]] = {}
    for table, day in sorted(days):
        by_table.setdefault(table, []).append(day)
    groups: dict[tuple[str, str, str], list[DayRecord]] = {}
    for table, of_table in by_table.items():
        for history in ledger.histories(table, of_table).values():
            known = [record for record in history if record.publication not in not_computed]
            since, was = ("", known[:1]) if not computed else (known[0].publication if known else "", known[1:2])
            if was and was[0].publication in rollbacks and since not in rollbacks:
                groups.setdefault((table, was[0].publication, since), []).append(was[0])
    new = NewSince(platform) if groups and with_files else None
    return tuple(
        _with_files(rollbacks[name], ledger.head(since) if since else None, records, new)
        for (_, name, since), records in groups.items()
    )


def _with_files(
    rollback: PublicationRecord, by: PublicationRecord | None, records: list[DayRecord], new: NewSince | None
) -> EndedRollback:
    table, days = records[0].table, tuple(sorted(record.day for record in records))
    if new is None:
        return EndedRollback(table, days, rollback, by=by)
    found: dict[str, int] = {}
    gone: dict[str, int] = {}
    of_older = len(records) > _LOOKED_AT
    for record in records[:_LOOKED_AT]:
        changes = new.changes(record.table, record.day, record)
        found |= {arrival.path: new.released(arrival.publication) for arrival in changes.arrivals}
        gone |= {arrival.origin or "": new.released(arrival.publication) for arrival in changes.withdrawals}
        of_older |= changes.of_older
    until = by.release if by else math.inf
    files, withdrawn = (
        tuple(
            sorted(
                (path for path, release in some.items() if rollback.release < release <= until),
                key=lambda path: (-some[path], path),
            )
        )
        for some in (found, gone)
    )
    counts = of_older or any(release <= until for release in found.values())
    return EndedRollback(table, days, rollback, files, by, withdrawn, counts)
