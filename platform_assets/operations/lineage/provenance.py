"""Origin of a published day, back to the delivered files, and what arrived there since. No JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from platform_assets.contracts import Contract, Input
from platform_assets.engine.pending import each_once, list_arrivals
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot, ReleaseIndex
from platform_assets.engine.state.planner import at_root_now, past_of, states_around
from platform_assets.engine.state.schema_changes import changes_of_contract
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.releases import computed_by, made_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.planning.arrivals import RawDay, new_arrivals
from platform_assets.planning.configuration import ContractChange
from platform_assets.planning.day_states import (
    Blocked,
    DayState,
    TableStates,
    missing_days,
    missing_input,
    stale_through_data,
    unblocked,
)
from platform_assets.planning.reasons import Reasons, digest_at, through_data, through_version
from platform_assets.planning.windows import days_before_calendar, days_read, window_text
from platform_assets.records.code_version import Version
from platform_assets.records.history import COMPACTION, ArrivalRecord, DayMark, DayRecord, Hold, PublicationRecord
from platform_assets.records.manifest import Scope
from platform_assets.sources.landing import Problem

_FILES_OF_DAYS = 62
"""Most raw days whose files are named; for more only the publications are."""


@dataclass(frozen=True)
class Origin:
    """Some days of a table at the version that was read, and their own origins.

    Args:
        window: window that read them; empty for the requested day.
        before_calendar: days of that window before the calendar, if a single day was read through it.
        version: version of the table that was read; -1 without one.
        days: every existing day that was read, with its record then.
        publications: publications of these days, newest first; for compacted ones also the one that computed them.
        arrivals: files whose rows are in these days of a raw table; None if there are too many days to look.
    """

    table: str
    window: str
    version: int
    days: Mapping[date, DayRecord]
    publications: tuple[PublicationRecord, ...]
    arrivals: tuple[ArrivalRecord, ...] | None
    inputs: tuple[Origin, ...]
    before_calendar: int = 0


@dataclass(frozen=True)
class Difference:
    """An input day that differs from the version that was read; a digest is None if the day did not exist."""

    table: str
    day: date
    then: str | None
    now: str | None


@dataclass(frozen=True)
class Explanation:
    """Full explanation of one day of a table.

    Args:
        reasons: why it is stale, whether it can be computed or not; none if it is up to date.
        lacking: input days that were never loaded, by table, the first of each.
        held: why the day stays unpublished or unchanged while its inputs stay the same.
        then: code version and configuration that computed it; None if it was never computed.
        now: those that would compute it now; None for a raw table.
        origin: its origin; None if it was never computed.
        differences: changes of its inputs since it read them.
        changes: changes of the contract since it was computed.
        software: software that computed it, from its manifest.
        scope: keys that alone were computed with it, if other rows may come from other software.
    """

    table: str
    day: date
    state: DayState
    reasons: Reasons
    lacking: Mapping[str, date]
    held: tuple[Hold, ...]
    then: Version | None
    now: Version | None
    origin: Origin | None
    differences: tuple[Difference, ...]
    changes: tuple[ContractChange, ...]
    software: Mapping[str, str]
    scope: Scope | None = None


def explain(platform: Platform, contract: Contract, day: date) -> Explanation:
    """Return where a day comes from, and what of that has changed."""
    table = contract.name
    snapshot = LakeSnapshot.now(platform)
    tables, states = states_around(snapshot, contract, [day])
    would_be = unblocked(states[day])
    record = snapshot.days(table, [day]).get(day)
    shown = snapshot.release.versions.get(table, -1)
    past = past_of(snapshot, tables, {table: states})
    by_data = through_data(contract, stale_through_data({day: would_be}), tables, past).get(day, ())
    reasons = (*by_data, *through_version({day: would_be}).get(day, ()))
    made = made_by(platform.lake, record.publication, table, day) if record else None
    return Explanation(
        table=table,
        day=day,
        state=at_root_now(snapshot, state) if isinstance(state := states[day], Blocked) else state,
        reasons=reasons,
        lacking=_lacking(contract, day, tables),
        held=tuple(hold for hold in snapshot.holds_of(table) if hold.day == day),
        then=Version(record.code_version, record.configuration) if record else None,
        now=platform.version(table) if contract.inputs else None,
        origin=_origin(platform, ReleaseIndex(snapshot), contract, {day: record}, "", shown) if record else None,
        differences=_differences(snapshot, contract, record, tables) if record else (),
        changes=changes_of_contract(snapshot, contract, tables.marks.get(table, {}))
        if "configuration" in reasons
        else (),
        software=made.software if made else {},
        scope=made.days[day].scope if made else None,
    )


def _lacking(contract: Contract, day: date, tables: TableStates) -> dict[str, date]:
    lacking: dict[str, date] = {}
    for read in contract.inputs:
        missing = {read.table: missing_days(read.table, tables)}
        if needed := missing_input([read], day, missing, tables.calendar):
            lacking[read.table] = needed[1]
    return lacking


def _differences(
    snapshot: LakeSnapshot, contract: Contract, record: DayRecord, tables: TableStates
) -> tuple[Difference, ...]:
    shown_by = ReleaseIndex(snapshot)
    differences: list[Difference] = []
    for read in contract.inputs:
        read_at = shown_by(read.table, record.reads.get(read.table, -1))
        now = tables.marks.get(read.table, {})
        days = [
            day
            for day in days_read(read.window, record.day, tables.calendar)
            if day not in now or now[day].release > read_at
        ]
        revisions = snapshot.revisions(read.table, days)
        for day in days:
            then = digest_at(revisions[day], read_at)
            if then != (digest := now[day].digest if day in now else None):
                differences.append(Difference(read.table, day, then, digest))
    return tuple(differences)


def _origin(
    platform: Platform,
    shown_by: ReleaseIndex,
    contract: Contract,
    days: Mapping[date, DayRecord],
    window: str,
    version: int,
    before_calendar: int = 0,
) -> Origin:
    names = {record.publication for record in days.values()}
    compacted = [name for name in names if (head := platform.ledger.head(name)) and head.kind == COMPACTION]
    took_over = {day: record.publication for day, record in days.items() if record.publication in compacted}
    names |= set(computed_by(platform.lake, contract.name, took_over).values())
    heads = [head for name in sorted(names, reverse=True) if (head := platform.ledger.head(name))]
    return Origin(
        table=contract.name,
        window=window,
        version=version,
        days=days,
        publications=tuple(heads),
        arrivals=_arrivals(platform, shown_by, contract, version, days) if contract.source else (),
        inputs=tuple(_input(platform, shown_by, read, days) for read in contract.inputs),
        before_calendar=before_calendar,
    )


def _input(platform: Platform, shown_by: ReleaseIndex, read: Input, readers: Mapping[date, DayRecord]) -> Origin:
    """Return the days of one input that some days read. If a day was read at several versions, the newest counts."""
    wanted: defaultdict[int, set[date]] = defaultdict(set)
    for day, record in readers.items():
        version = record.reads.get(read.table, -1)
        wanted[version].update(days_read(read.window, day, platform.calendar))
    records: dict[date, DayRecord] = {}
    for version in sorted(wanted):
        if version >= 0:
            at = shown_by(read.table, version)
            among = None if read.table in platform.catalogue.histories else wanted[version]
            there = platform.ledger.current_days(read.table, at=at, among=among)
            records |= {day: of for day, of in there.items() if platform.counted_on(read.table, day) in wanted[version]}
    return _origin(
        platform,
        shown_by,
        platform.catalogue[read.table],
        dict(sorted(records.items())),
        window_text(read.window),
        max(wanted, default=-1),
        days_before_calendar(read.window, next(iter(readers)), platform.calendar) if len(readers) == 1 else 0,
    )


def _arrivals(
    platform: Platform, shown_by: ReleaseIndex, contract: Contract, version: int, days: Collection[date]
) -> tuple[ArrivalRecord, ...] | None:
    """Return the files whose rows are in some days of a raw table, from its arrival column."""
    if len(days) > _FILES_OF_DAYS:
        return None
    names = arrivals_named(platform.lake.table_path(contract.name), version, days)
    arrivals = platform.ledger.arrivals(contract.name)
    if names is None:
        # Compacted, and the files of then deleted. Raw is append-only: what came later is known by its release.
        names = arrivals_named(platform.lake.table_path(contract.name), shown_by.version(contract.name), days) or set()
        released, at = platform.ledger.indexed(), shown_by(contract.name, version)
        arrivals = tuple(arrival for arrival in arrivals if released[arrival.publication] <= at)
    taken = {arrival.path: arrival for arrival in arrivals if arrival.taken}
    withdrawn = [arrival for arrival in arrivals if arrival.kind == "withdrawal" and arrival.origin in names]
    return (*(taken[name] for name in sorted(names) if name in taken), *withdrawn)


def arrivals_in(files: Iterable[Location]) -> set[str]:
    """Return paths of the arrivals whose rows are in some files of a raw table, from its arrival column."""
    names: set[str] = set()
    for file in files:
        with opened(file, once=["_arrival"]) as parquet:
            for batch in parquet.iter_batches(columns=["_arrival"]):
                names.update(batch.column(0).dictionary.to_pylist())
    return names


def arrivals_named(path: Location, version: int, days: Collection[date]) -> set[str] | None:
    """Return the arrivals named by rows of some days; None if a file no longer exists."""
    live = live_files(path, version) if version >= 0 else {}
    files = [path / file.path for day in days for file in live.get(day, ())]
    return arrivals_in(files) if all(file.exists() for file in files) else None


def replaced_files(platform: Platform, origin: Origin) -> tuple[Problem, ...]:
    """Return a problem for each replaced file; none if the day read too many days to look up their files."""
    return each_once(_replaced(platform, origin))


def _replaced(platform: Platform, origin: Origin) -> Iterator[Problem]:
    if taken := [arrival for arrival in origin.arrivals or () if arrival.kind != "withdrawal"]:
        # For approved late rows, the file is the origin of the approval.
        files = {path for arrival in taken for path in (arrival.path, arrival.origin) if path}
        listed = list_arrivals(platform, platform.catalogue[origin.table], among=files)
        yield from (problem for problem in listed.problems if problem.is_replaced)
    for read in origin.inputs:
        yield from _replaced(platform, read)


class Changes(NamedTuple):
    """Changes between the inputs of a day then and now.

    Args:
        arrivals: new arrivals that count, newest first.
        withdrawals: withdrawals of arrivals among its rows since then.
        of_older: whether any of these concerns an arrival that the day was computed from.
        versions: changed code and configurations, as `the code of gold.tills`: of the table and its inputs.
    """

    arrivals: tuple[ArrivalRecord, ...] = ()
    withdrawals: tuple[ArrivalRecord, ...] = ()
    of_older: bool = False
    versions: tuple[str, ...] = ()


class NewSince:
    """Compare the present inputs of days with those they were computed from."""

    def __init__(self, platform: Platform) -> None:
        self.snapshot = LakeSnapshot.now(platform)
        self._platform = platform
        self._shown_by = ReleaseIndex(self.snapshot)

    @cached_property
    def _marks(self) -> Mapping[str, Mapping[date, DayMark]]:
        return self.snapshot.marks(self._platform.catalogue.names)

    @cached_property
    def _arrivals(self) -> tuple[ArrivalRecord, ...]:
        return self._platform.ledger.arrivals()

    @cached_property
    def _released(self) -> Mapping[str, int]:
        return self._platform.ledger.indexed()

    def changes(self, table: str, day: date, record: DayRecord | None) -> Changes:
        """Return the changes of a day's inputs.

        Args:
            record: record with the inputs then; None for everything that arrived for the day.
        """
        contract = self._platform.catalogue[table]
        now = self._platform.version(table) if contract.inputs else None
        found = tuple(self._behind(contract, day, record, now, set()))
        days = [raw for raw in found if isinstance(raw, RawDay)]
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
            tuple(sorted({other for other in found if isinstance(other, str)})),
        )

    def released(self, publication: str) -> int:
        """Return the release that showed a publication; -1 if none did."""
        return self._released.get(publication, -1)

    def _behind(
        self, contract: Contract, day: date, record: DayRecord | None, by: Version | None, seen: set[tuple[str, date]]
    ) -> Iterator[RawDay | str]:
        """Yield changed raw days behind a day; for a new day, those of the same day.

        Also collect changed code and configurations on the way, `by` being those of the record.
        """
        if record and by:
            others = zip(("code", "configuration"), record.made_by.differs(by), strict=True)
            yield from (f"the {part} of {contract.name}" for part, is_other in others if is_other)
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
                    now = Version(marks[each].code_version, marks[each].configuration)
                    yield from self._behind(source, each, then.get(each), now, seen)
                else:
                    path, version = self._platform.lake.table_path(read.table), self._shown_by.version(read.table)
                    names = arrivals_named(path, version, [each])
                    yield RawDay(read.table, each, at, names or ())

    def _then(self, table: str, days: Collection[date], at: int) -> Mapping[date, DayRecord]:
        return self._platform.ledger.current_days(table, at=at, among=days) if at >= 0 and days else {}
