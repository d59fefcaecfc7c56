"""What a step reads and compares with: one release, and the staged days that lie over it.

Without a stage it is the release itself. Everything the engine asks about days, holds and files while it computes goes
through a snapshot, so that a step in a stage and a step on the release are the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import TypeVar

from platform_assets.contracts import Contract
from platform_assets.engine.circuits import stopped
from platform_assets.engine.day_contents import Files
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta.schema import schema_at
from platform_assets.lakehouse.releases import Release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.ledger.sync import day_records
from platform_assets.planning.days_on_demand import DaysOnDemand
from platform_assets.planning.last_look import Since
from platform_assets.planning.loaded import Delivered, loaded_days, with_history
from platform_assets.planning.reasons import Revision
from platform_assets.planning.replays import Delivery, order_number, replays
from platform_assets.records.history import DayMark, DayRecord, Hold, Marks
from platform_assets.records.manifest import STAGED, TableChange
from platform_assets.records.staged_days import StagedDays

_Content = TypeVar("_Content", DayRecord, DayMark)


@dataclass(frozen=True)
class LakeSnapshot:
    """A release, and what a stage puts in place of some of its days.

    Args:
        platform: the lake the files are in, and the ledger of what is known of them.
        release: that is read.
        staged: days that lie over it.
        is_try: whether days are computed to try an open circuit, which then stops nothing; they are not published.
    """

    platform: Platform
    release: Release
    staged: StagedDays = field(default_factory=StagedDays)
    is_try: bool = False

    @classmethod
    def now(cls, platform: Platform) -> LakeSnapshot:
        """The current release, without a stage."""
        return cls(platform, platform.current_release())

    @property
    def number(self) -> int:
        """Of the release."""
        return self.release.number

    @property
    def moment(self) -> str:
        """A mark that two snapshots share only if the same follows from both, as a plan does."""
        staged = {
            table: {day: self.staged.of(table)[day].digest for day in days} for table, days in self.staged.days.items()
        }
        holds = sorted(map(repr, self.holds()))
        holds += sorted(map(repr, stopped(self.platform).items()))
        made = (sorted(staged.items()), holds, self.platform.calendar, sorted(self.platform.versions.items()))
        return f"{self.number} {sha256(repr(made).encode()).hexdigest()}"

    def version(self, table: str) -> int | None:
        """Of a table at the release; None where it was never published."""
        return self.release.versions.get(table)

    def has(self, table: str) -> bool:
        """Whether anything of a table was ever published, or is staged."""
        return table in self.staged.tables or table in self.release.versions

    def reads(self, tables: Iterable[str]) -> dict[str, int]:
        """What a manifest says was read of some tables: their version, or that it was staged with the days."""
        return {
            table: STAGED if table in self.staged.tables else self.release.versions.get(table, -1) for table in tables
        }

    def released_files(self, table: str) -> Files:
        """As `files`, of what the release has, whatever is staged over it."""
        version = self.version(table)
        return {} if version is None else self.platform.remembered_files(table, version)

    def files(self, table: str) -> Files:
        """The files of every day of a table that has rows, oldest first."""
        live = self.released_files(table)
        over = {day: content.files for day, content in self.staged.of(table).items()}
        if not over:
            return live
        return {day: files for day, files in sorted({**live, **over}.items()) if files}

    def schema_string(self, table: str) -> str:
        """The columns of a table, as Delta writes them down.

        Raises:
            DamagedTableError: its log cannot be read.
        """
        if table in self.staged.tables:
            return self.staged.tables[table].schema_string
        return schema_at(self.platform.lake.table_path(table), self.release.versions[table])

    def days(self, table: str, among: Collection[date] | None = None) -> dict[date, DayRecord]:
        """What is known of every day of a table that has rows, or is known to have none, oldest first.

        Of a raw table these may be more than its loaded days: rows wait on days that nobody computes from yet.

        Args:
            among: only these days.
        """
        released = self.platform.ledger.current_days(table, at=self.number, among=among)
        over = {day: record for day, record in self._over(table).items() if among is None or day in among}
        return _loaded({**released, **over}) if over else released

    def published_since(self, earlier: LakeSnapshot, table: str, among: Collection[date]) -> set[date]:
        """Return the days of a table that others published since an earlier snapshot, be it with the files they had."""
        then, now = earlier.days(table, among), self.days(table, among)
        return {day for day, record in now.items() if day not in then or then[day].publication != record.publication}

    def digests(self, table: str) -> dict[date, str]:
        """Content of every loaded day of a table."""
        return {day: mark.digest for day, mark in self.marks([table])[table].items()}

    def marks(self, tables: Collection[str]) -> Marks:
        """What planning looks at, of every loaded day of some tables, oldest first."""
        marks = self.platform.ledger.marks(tables, at=self.number)
        for table in self.staged.tables.keys() & set(tables):
            over = {day: _mark(record, self.number + 1) for day, record in self._over(table).items()}
            marks[table] = _loaded({**marks[table], **over})
        return {table: self._counting(table, days) for table, days in marks.items()}

    def delivered_days(self, table: str, since: Since | None) -> Mapping[date, DayMark]:
        """The days of a raw table that have rows, or are known to have none, also those that do not count yet.

        Args:
            since: the last look at the days that counted, and what happened since; then on demand.
        """
        ledger = self.platform.ledger
        if since is None:
            return ledger.marks([table], at=self.number)[table]
        return DaysOnDemand(
            self.platform.calendar,
            since.open_days(table),
            lambda first, last: ledger.looks.marks(table, first, last, at=self.number),
        )

    def marks_on_demand(self, tables: Collection[str], since: Since) -> Marks:
        """As `marks`, looked up where somebody asks; a release alone, without a stage.

        Args:
            since: which of their days were up to date, and so are there.
        """
        return {
            table: DaysOnDemand(self.platform.calendar, since.open_days(table), self._fetcher(table))
            for table in tables
        }

    def _fetcher(self, table: str) -> Callable[[date, date], dict[date, DayMark]]:
        looks = self.platform.ledger.looks
        return lambda first, last: self._counting(table, looks.marks(table, first, last, at=self.number))

    def delivered(self, table: str) -> Delivered:
        """How far the deliveries for a raw table have come."""
        newest = self.platform.ledger.newest_arrival_date(table, at=self.number)
        return Delivered(self.platform.calendar, self.platform.settings.current_day(), newest)

    def places(self, source: Contract) -> tuple[dict[str, Delivery], dict[str, int]]:
        """What orders the rows of a raw table besides what is in them.

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
        while deliveries and self._raw_at(source, at) > (self.version(source.name) or 0):
            at -= 1
        if at < self.number:
            deliveries = ledger.deliveries(source.name, at=at, alike_only=not is_numbered)
        numbers = {delivery.path: order_number(delivery, order) for delivery in deliveries} if is_numbered else {}
        return {} if is_anew else replays(deliveries, order), numbers

    def _raw_at(self, source: Contract, number: int) -> int:
        return release_of(self.platform.lake, number).versions.get(source.name, 0)

    def revisions(self, table: str, among: Collection[date]) -> dict[date, tuple[Revision, ...]]:
        """All that some days of a table have been, oldest first; what is staged is the newest."""
        revisions = self.platform.ledger.revisions(table, among, at=self.number)
        for day, record in self._over(table).items():
            if day in revisions:
                revisions[day] = (*revisions[day], Revision(self.number + 1, record.digest, record.rows, 0))
        return revisions

    def holds(self, table: str | None = None) -> tuple[Hold, ...]:
        """What is held, of one table or of all, by table and day, oldest first."""
        there = [hold for hold in self.platform.ledger.holds(table) if hold not in self.staged.over]
        mine = [hold for hold in self.staged.holds if table in (None, hold.table)]
        return tuple(sorted([*there, *mine], key=lambda hold: (hold.table, hold.day, hold.created_at)))

    def _counting(self, table: str, days: dict[date, DayMark]) -> dict[date, DayMark]:
        """The loaded days: of a raw table those that its source has had the time to deliver."""
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
    """Oldest first, without those that a rollback leaves as if they had never been computed."""
    return {day: content for day, content in sorted(days.items()) if content.digest}


def _mark(record: DayRecord, release: int) -> DayMark:
    return DayMark(**{name: getattr(record, name) for name in DayMark._fields if name != "release"}, release=release)
