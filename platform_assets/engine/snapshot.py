"""The lake at one moment, on which a plan or a step decides, reads and compares.

A snapshot is one release and the staged days over it. What a release alone does not fix (holds, open circuits, the
calendar, the last look) is read once and stays, so that all decisions on a snapshot use the same facts. Take another
one for a later moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache, cached_property
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from platform_assets.contracts import Contract
from platform_assets.engine.circuits import stopped
from platform_assets.engine.day_contents import Files
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta.schema import schema_at
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.ledger.sync import day_records
from platform_assets.planning.arrivals import Delivered, Delivery, loaded_days, order_number, replays, with_history
from platform_assets.planning.last_look import Since, look_for
from platform_assets.planning.reasons import Reasons, Revision
from platform_assets.planning.windows import Calendar, DaysOnDemand
from platform_assets.records.history import DayMark, DayRecord, Hold, Marks, StagedDays
from platform_assets.records.manifest import STAGED, TableChange

_Content = TypeVar("_Content", DayRecord, DayMark)


@dataclass(frozen=True)
class LakeSnapshot:
    """A release, and a stage's days that replace some of its days.

    Args:
        is_private: whether days are computed to try an open circuit or in a person's own stage: no circuit stops or
            counts that, as nothing is published.
        looks_back: whether days may count as up to date because they were at the last look.
    """

    platform: Platform
    release: Release
    staged: StagedDays = field(default_factory=StagedDays)
    is_private: bool = False
    looks_back: bool = True
    _known: dict[str, Mapping[date, DayMark]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def now(cls, platform: Platform) -> LakeSnapshot:
        """Return the current release, without a stage."""
        return cls(platform, platform.current_release())

    @property
    def number(self) -> int:
        """Return the number of the release."""
        return self.release.number

    @property
    def moment(self) -> str:
        """Return a mark that two snapshots share only if every decision on them is the same."""
        staged = {
            table: {day: self.staged.of(table)[day].digest for day in days} for table, days in self.staged.days.items()
        }
        holds = sorted(map(repr, self.holds))
        holds += sorted(map(repr, self.stopped.items()))
        made = (sorted(staged.items()), holds, self.calendar, sorted(self.platform.versions.items()))
        return f"{self.number} {sha256(repr(made).encode()).hexdigest()}"

    @cached_property
    def calendar(self) -> Calendar:
        """Return the days that exist."""
        return self.platform.calendar

    @cached_property
    def stopped(self) -> Mapping[str, Hold]:
        """Return why open circuits stop tables; nothing while one of them is tried."""
        return {} if self.is_private else stopped(self.platform)

    @cached_property
    def look_for(self) -> str:
        """Return a hash of what a look at all days depends on: contracts, code and first day."""
        configurations = {name: of_table.hash for name, of_table in self.platform.configurations.items()}
        return look_for(self.platform.catalogue, self.platform.versions, configurations, self.calendar.first)

    @cached_property
    def since(self) -> Since | None:
        """Return the last look at all days and what happened since; None if all must be looked at, as in a stage."""
        if not self.looks_back or self.is_staged:
            return None
        platform = self.platform
        today = platform.settings.current_day()
        since = platform.ledger.looks.since(self.look_for, at=self.number, calendar=self.calendar, today=today)
        return since and replace(
            since,
            published={
                table: {*days, *(platform.counted_on(table, day) for day in days)}
                for table, days in since.published.items()
            },
        )

    @property
    def is_staged(self) -> bool:
        """Return whether any day is staged over the release."""
        return bool(self.staged.tables or self.staged.over or self.staged.holds)

    def version(self, table: str) -> int | None:
        """Return the version of a table at the release; None if it was never published."""
        return self.release.versions.get(table)

    def has(self, table: str) -> bool:
        """Return whether a table was ever published, or is staged."""
        return table in self.staged.tables or table in self.release.versions

    def reads(self, tables: Iterable[str]) -> dict[str, int]:
        """Return the read versions of some tables for a manifest: a number, or that it was staged with the days."""
        return {
            table: STAGED if table in self.staged.tables else self.release.versions.get(table, -1) for table in tables
        }

    def released_files(self, table: str) -> Files:
        """Return the files of the release, without staged days."""
        version = self.version(table)
        return {} if version is None else self.platform.remembered_files(table, version)

    def files(self, table: str) -> Files:
        """Return the files of every day of a table that has rows, oldest first."""
        live = self.released_files(table)
        over = {day: content.files for day, content in self.staged.of(table).items()}
        if not over:
            return live
        return {day: files for day, files in sorted({**live, **over}.items()) if files}

    def schema_string(self, table: str) -> str:
        """Return the columns of a table, as Delta's schema string.

        Raises:
            DamagedTableError: its log cannot be read.
        """
        if table in self.staged.tables:
            return self.staged.tables[table].schema_string
        return schema_at(self.platform.lake.table_path(table), self.release.versions[table])

    def days(self, table: str, among: Collection[date] | None = None) -> dict[date, DayRecord]:
        """Return the records of all loaded days of a table, with or without rows, oldest first.

        A raw table may have more days than its loaded ones: rows may wait on days that are not read yet.
        """
        released = self.platform.ledger.current_days(table, at=self.number, among=among)
        over = {day: record for day, record in self._over(table).items() if among is None or day in among}
        return _loaded({**released, **over}) if over else released

    def published_since(self, earlier: LakeSnapshot, table: str, among: Collection[date]) -> set[date]:
        """Return the days of a table that others published since an earlier snapshot, even with the same files."""
        then, now = earlier.days(table, among), self.days(table, among)
        return {day for day, record in now.items() if day not in then or then[day].publication != record.publication}

    def digests(self, table: str) -> dict[date, str]:
        """Return the digest of every loaded day of a table."""
        return {day: mark.digest for day, mark in self.marks([table])[table].items()}

    def marks(self, tables: Collection[str]) -> Marks:
        """Return the marks that planning needs of every loaded day of some tables, oldest first."""
        lacking = [table for table in tables if not isinstance(self._known.get(table), dict)]
        marks = self.platform.ledger.marks(lacking, at=self.number) if lacking else {}
        for table in self.staged.tables.keys() & set(lacking):
            over = {day: _mark(record, self.number + 1) for day, record in self._over(table).items()}
            marks[table] = _loaded({**marks[table], **over})
        self._known.update({table: self._counting(table, days) for table, days in marks.items()})
        return {table: self._known[table] for table in tables}

    def marks_on_demand(self, tables: Collection[str]) -> Marks:
        """Return the same marks, for a long history looked up on demand: most days are known to exist."""
        if self.since is None or self.since.is_of_most_days(tables):
            return self.marks(tables)
        for table in tables:
            self._known.setdefault(table, self._on_demand(table, self.since, counting=True))
        return {table: self._known[table] for table in tables}

    def forget_marks(self) -> None:
        """Read marks again on demand: a look at all days starts from fresh ones."""
        self._known.clear()

    def delivered_days(self, table: str) -> Mapping[date, DayMark]:
        """Return the days of a raw table that have rows, or certainly none, also those that do not count yet."""
        if self.since is None:
            return self.platform.ledger.marks([table], at=self.number)[table]
        return self._on_demand(table, self.since, counting=False)

    def _on_demand(self, table: str, since: Since, *, counting: bool) -> DaysOnDemand[DayMark]:
        def fetched(first: date, last: date) -> dict[date, DayMark]:
            days = self.platform.ledger.looks.marks(table, first, last, at=self.number)
            return self._counting(table, days) if counting else days

        return DaysOnDemand(self.calendar, since.open_days(table), fetched)

    def delivered(self, table: str) -> Delivered:
        """Return how far the deliveries for a raw table have come."""
        newest = self.platform.ledger.newest_arrival_date(table, at=self.number)
        return Delivered(self.calendar, self.platform.settings.current_day(), newest)

    def places(self, source: Contract) -> tuple[dict[str, Delivery], dict[str, int]]:
        """Return what orders the rows of a raw table besides their own columns.

        Returns:
            The first file of the same content for every arrival whose content came before, and the number of every
            arrival's file, of a source that orders its files by more than their names: when it was changed last, or
            what its name says.
        """
        assert source.source is not None
        order, is_anew = source.source.order, source.source.resent == "anew"
        is_numbered = order not in (None, "name")
        if is_anew and not is_numbered:
            return {}, {}
        ledger = self.platform.ledger
        deliveries, at = ledger.deliveries(source.name, at=self.number, alike_only=not is_numbered), self.number
        # A day is verified from what raw was, and files that came since said nothing of it.
        raw, mine = source.name, self.version(source.name) or 0
        while deliveries and release_of(self.platform.lake, at).versions.get(raw, 0) > mine:
            at -= 1
        if at < self.number:
            deliveries = ledger.deliveries(source.name, at=at, alike_only=not is_numbered)
        numbers = {delivery.path: order_number(delivery, order) for delivery in deliveries} if is_numbered else {}
        return {} if is_anew else replays(deliveries, order), numbers

    def revisions(self, table: str, among: Collection[date]) -> dict[date, tuple[Revision, ...]]:
        """Return all revisions of some days of a table, oldest first; a staged one is the newest."""
        revisions = self.platform.ledger.revisions(table, among, at=self.number)
        for day, record in self._over(table).items():
            if day in revisions:
                revisions[day] = (*revisions[day], Revision(self.number + 1, record.digest, record.rows, 0))
        return revisions

    @cached_property
    def holds(self) -> tuple[Hold, ...]:
        """Return the holds, by table and day, oldest first."""
        there = [hold for hold in self.platform.ledger.holds() if hold not in self.staged.over]
        return tuple(sorted([*there, *self.staged.holds], key=lambda hold: (hold.table, hold.day, hold.created_at)))

    def holds_of(self, table: str) -> tuple[Hold, ...]:
        """Return the holds of one table, by day, oldest first."""
        return tuple(hold for hold in self.holds if hold.table == table)

    def _counting(self, table: str, days: dict[date, DayMark]) -> dict[date, DayMark]:
        """Return the loaded days; for a raw table those that its source has had the time to deliver."""
        contract = self.platform.catalogue[table] if table in self.platform.catalogue.names else None
        if contract is None or contract.source is None:
            return days
        delivered = self.delivered(table)
        if table in self.platform.catalogue.histories:
            days = with_history(days, delivered.calendar.first)
        return loaded_days(contract, days, delivered)

    def _over(self, table: str) -> Mapping[date, DayRecord]:
        return self._staged.get(table, {})

    @cached_property
    def _staged(self) -> Mapping[str, Mapping[date, DayRecord]]:
        return {table: _records(change) for table, change in self.staged.tables.items()}


def _records(change: TableChange) -> dict[date, DayRecord]:
    return {record.day: record for record in day_records(change, "staged")}


def _loaded(days: Mapping[date, _Content]) -> dict[date, _Content]:
    """Return loaded days, oldest first, without those that a rollback left as if never computed."""
    return {day: content for day, content in sorted(days.items()) if content.digest}


def _mark(record: DayRecord, release: int) -> DayMark:
    return DayMark(**{name: getattr(record, name) for name in DayMark._fields if name != "release"}, release=release)


class OpenStage(BaseModel):
    """One release, and the days computed over it.

    Args:
        publication: publication of this release; in a restored lake the number may belong to another.
        opened_at: UTC.
        reasons: why each day was computed, by table.
        folders: tables with staged rows, by publication of a batch.
        published_as: publication that is being made of it; once that is released, the stage is over.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    release: int
    publication: str
    opened_at: datetime
    changed_at: datetime
    who: str
    why: str
    staged: StagedDays = StagedDays()
    reasons: Mapping[str, Mapping[date, Reasons]] = {}
    folders: Mapping[str, tuple[str, ...]] = {}
    published_as: str = ""


class ReleaseIndex:
    """Find the release that last showed a version of a table; versions only grow, so few releases are read."""

    def __init__(self, snapshot: LakeSnapshot) -> None:
        lake, self._newest = snapshot.platform.lake, snapshot.release
        self._versions = cache(lambda number: release_of(lake, number).versions)
        self._found: dict[tuple[str, int], int] = {}

    def version(self, table: str) -> int:
        """Return the version of a table in a release; -1 if it was never published."""
        return self._newest.versions.get(table, -1)

    def __call__(self, table: str, version: int) -> int:
        """Return the number of the newest release that shows the version; -1 for a table that did not exist."""
        if version < 0:
            return -1
        if version >= self._newest.versions.get(table, -1):
            return self._newest.number
        if (table, version) not in self._found:
            low, high = 0, self._newest.number
            while high - low > 1:
                middle = (low + high) // 2
                if self._versions(middle).get(table, -1) <= version:
                    low = middle
                else:
                    high = middle
            self._found[table, version] = low
        return self._found[table, version]
