"""Rollbacks that end because what their days are made from is another one: which, and which files did it.

A rollback holds its days until then, so one row that has nothing to do with it ends it. Whoever put the days back has
to hear of that, before it happens where a plan is shown, and after it did.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.provenance import NewSince
from platform_assets.planning.rollback import TableDay
from platform_assets.planning.windows import which
from platform_assets.records.history import COMPACTION, ERASURE, ROLL_BACK, DayRecord, Hold, PublicationRecord
from platform_assets.words import counted

_LOOKED_AT = 10
"""Days of a rollback of which files are looked for: that opens files of raw days."""

_SHOWN = 3
"""Files that are named."""


@dataclass(frozen=True)
class EndedRollback:
    """What becomes, or became, of days that were rolled back.

    Args:
        days: oldest first.
        files: that are new since then in what they are made from, newest first.
        by: what was published of them since; None while nothing is.
        withdrawn: files whose rows were among what they are made from, and that were withdrawn since.
        counts: whether they differ from what was put back in more than these files, or that is not known.
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
        """Which rollback it is, of which days."""
        made = f"release {self.rollback.release}, {self.rollback.who}: {self.rollback.why}"
        return f"the rollback of {counted(len(self.days), 'day')} of {self.table} ({which(self.days)}; {made})"

    @property
    def is_done(self) -> bool:
        """Whether it ends only because the files it was about were withdrawn, so that nobody has to look."""
        return bool(self.withdrawn) and not self.counts

    @property
    def sentence(self) -> str:
        """All that is to be said."""
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
    return _Past(platform).ended(_put_back(standing), computed=False) if standing else ()


def ended_rollbacks(platform: Platform, stood: Iterable[Hold]) -> tuple[EndedRollback, ...]:
    """Of the rollbacks that held days before, those that hold them no more because the days were computed."""
    gone = _put_back(stood)
    gone -= _put_back(platform.ledger.holds()) if gone else set()
    return _Past(platform).ended(gone, computed=True) if gone else ()


def rollback_of(platform: Platform, table: str, day: date, *, stale: bool) -> EndedRollback | None:
    """Return the rollback that ended when a day became what it is, or that ends once it is computed.

    Args:
        stale: whether the day is going to be computed.
    """
    stands = (table, day) in _put_back(platform.ledger.holds(table))
    if stands and not stale:
        return None
    # A day that went back with all that it is made from is not held: what was taken back stays so there.
    held = {ended.hold.run for ended in platform.ledger.ended_holds(table, day) if ended.hold.is_of_good_content}
    if not stands and not held:
        return None
    found = next(iter(_Past(platform).ended({(table, day)}, computed=not stands)), None)
    return found if found and (stands or found.rollback.run in held) else None


def standing_rollbacks(platform: Platform, tables: Collection[str]) -> tuple[EndedRollback, ...]:
    """Return the rollbacks that hold days of some tables; what ends them is not known yet."""
    held = {key for key in _put_back(platform.ledger.holds()) if key[0] in tables}
    return _Past(platform).ended(held, computed=False, with_files=False) if held else ()


def _put_back(holds: Iterable[Hold]) -> set[TableDay]:
    """Return the days whose rollback new input can end."""
    return {(hold.table, hold.day) for hold in holds if hold.is_of_good_content and not hold.lasts}


class _Past:
    """What days were before what they are."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._rollbacks = {head.publication: head for head in platform.ledger.heads(ROLL_BACK)}

    @cached_property
    def _new(self) -> NewSince:
        return NewSince(self._platform)

    def ended(
        self, days: Collection[TableDay], *, computed: bool, with_files: bool = True
    ) -> tuple[EndedRollback, ...]:
        """Return those of some days that a rollback put back, together as far as the same is to be said of them.

        Args:
            computed: whether something else was made of them since, by what ended it; else they are as put back.
            with_files: whether to look for files.
        """
        if not self._rollbacks:
            return ()
        ledger = self._platform.ledger
        not_computed = {head.publication for kind in (COMPACTION, ERASURE) for head in ledger.heads(kind)}
        by_table: dict[str, list[date]] = {}
        for table, day in sorted(days):
            by_table.setdefault(table, []).append(day)
        groups: dict[tuple[str, str, str], list[DayRecord]] = {}
        for table, of_table in by_table.items():
            for history in ledger.histories(table, of_table).values():
                known = [record for record in history if record.publication not in not_computed]
                since, was = ("", known[:1]) if not computed else (known[0].publication if known else "", known[1:2])
                if was and was[0].publication in self._rollbacks and since not in self._rollbacks:
                    groups.setdefault((table, was[0].publication, since), []).append(was[0])
        return tuple(
            self._told(self._rollbacks[name], since, records, with_files=with_files)
            for (_, name, since), records in groups.items()
        )

    def _told(
        self, rollback: PublicationRecord, since: str, records: list[DayRecord], *, with_files: bool
    ) -> EndedRollback:
        by = self._platform.ledger.head(since) if since else None
        days = tuple(sorted(record.day for record in records))
        if not with_files:
            return EndedRollback(records[0].table, days, rollback, by=by)
        new = self._new
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
        return EndedRollback(records[0].table, days, rollback, files, by, withdrawn, counts)
