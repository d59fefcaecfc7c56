"""Which arrivals are new in what a day would be made from, back through all that it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import NamedTuple

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import ReleaseIndex
from platform_assets.operations.lineage.provenance import arrivals_named
from platform_assets.planning.new_arrivals import RawDay, new_arrivals
from platform_assets.planning.windows import days_read
from platform_assets.records.history import ArrivalRecord, DayMark, DayRecord


class Changes(NamedTuple):
    """How what a day would be made from differs from what it was made from.

    Args:
        arrivals: that are new and count, newest first.
        withdrawals: since then, of arrivals whose rows lie there.
        of_older: whether any of these is of an arrival that the day was made from.
    """

    arrivals: tuple[ArrivalRecord, ...]
    withdrawals: tuple[ArrivalRecord, ...]
    of_older: bool


class NewSince:
    """What days would be made from now, against what they were made from."""

    def __init__(self, platform: Platform) -> None:
        self.snapshot = LakeSnapshot.now(platform)
        self._platform = platform
        self._shown_by = ReleaseIndex(platform)

    @cached_property
    def _marks(self) -> Mapping[str, Mapping[date, DayMark]]:
        return self.snapshot.marks(self._platform.catalogue.names)

    @cached_property
    def _arrivals(self) -> tuple[ArrivalRecord, ...]:
        return self._platform.ledger.arrivals()

    @cached_property
    def _released(self) -> Mapping[str, int]:
        return self._platform.ledger.indexed()

    def arrivals(self, table: str, day: date, record: DayRecord | None) -> tuple[ArrivalRecord, ...]:
        """Return those that are new in what a day would be made from, newest first.

        Args:
            record: since it was made like this; None for all that came for the day.
        """
        return self.changes(table, day, record).arrivals

    def changes(self, table: str, day: date, record: DayRecord | None) -> Changes:
        """Return the same, and what was withdrawn of what lies there."""
        days = tuple(self._raw_days(self._platform.catalogue[table], day, record, set()))
        since = {(raw.table, path): raw.since for raw in days for path in raw.arrivals}
        came = {(one.table, one.path): self.released(one.publication) for one in self._arrivals}
        gone = tuple(
            one
            for one in self._arrivals
            if one.kind == "withdrawal"
            and (key := (one.table, one.origin or "")) in since
            and self.released(one.publication) > since[key]
        )
        return Changes(
            new_arrivals(days, self._arrivals, self._released),
            gone,
            any(came.get(key, -1) <= since[key] for one in gone for key in [(one.table, one.origin or "")]),
        )

    def released(self, publication: str) -> int:
        """Return the release that made a publication visible; -1 if none did."""
        return self._released.get(publication, -1)

    def _raw_days(
        self, contract: Contract, day: date, record: DayRecord | None, seen: set[tuple[str, date]]
    ) -> Iterator[RawDay]:
        """Yield the raw days behind a day that are not as they were read; of a new day, those of the same day."""
        for read in contract.inputs:
            source, marks = self._platform.catalogue[read.table], self._marks[read.table]
            made = record is not None and bool(record.digest)
            at = self._shown_by(read.table, record.reads.get(read.table, -1)) if record and made else -1
            window = days_read(read.window, day, self._platform.calendar) if made else [day]
            later = [each for each in window if each in marks and marks[each].release > at]
            then = self._then(read.table, later, at)
            for each in later:
                if (each in then and then[each].digest == marks[each].digest) or (read.table, each) in seen:
                    continue
                seen.add((read.table, each))
                if source.source is None:
                    yield from self._raw_days(source, each, then.get(each), seen)
                else:
                    path, version = self._platform.lake.table_path(read.table), self._shown_by.version(read.table)
                    names = arrivals_named(path, version, [each])
                    yield RawDay(read.table, each, at, names or ())

    def _then(self, table: str, days: Collection[date], at: int) -> Mapping[date, DayRecord]:
        return self._platform.ledger.current_days(table, at=at, among=days) if at >= 0 and days else {}
