"""State of a platform: loaded, missing, stale and held days, files and rows set aside, messages, circuits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.circuits import stopped
from platform_assets.engine.ingest.aside import RefusedFiles, refused_files
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.pending import each_once, landing_problem, list_arrivals, unread_folders
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import look_at_all
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.quarantine import Acknowledged, Finding
from platform_assets.planning.arrivals import delays, loaded_days
from platform_assets.planning.day_states import Blocked, Held, Stale, missing_days
from platform_assets.planning.rows_aside import LateCounts
from platform_assets.planning.windows import days_later
from platform_assets.planning.windows import newest as newest_of
from platform_assets.quality.baseline import quiet_days
from platform_assets.quality.findings import day_metrics, percentile_95, share
from platform_assets.records.decisions import Acknowledgement
from platform_assets.records.history import DayRecord
from platform_assets.records.outbox import MessageState
from platform_assets.sources.landing import Problem


@dataclass(frozen=True)
class TableStatus:
    """State of a table.

    Args:
        days: loaded days, empty ones included, without days on which nothing was expected and nothing came.
        missing: days of the calendar that should be loaded and are not, without held ones.
        stale: days that would change and can be computed, including those never computed.
        blocked: days that should be computed, and wait for their inputs.
        days_outside: days of a raw table with rows outside the calendar, oldest first; not counted as rows.
        awaited: missing days of a raw table.
    """

    table: str
    newest: date | None
    days: int
    missing: int
    stale: int
    held: int
    blocked: int
    rows: int
    quarantined: int
    refused: int
    days_outside: tuple[date, ...] = ()
    awaited: tuple[date, ...] = ()


@dataclass(frozen=True)
class Status:
    """Everything that `status` shows; `metrics` only for programs."""

    tables: Sequence[TableStatus]
    held: Sequence[HeldDay]
    warned: Sequence[DayRecord]
    refused: RefusedFiles
    landing: Sequence[Problem]
    unread: Mapping[str, str]
    pending: Mapping[str, int]
    late: Mapping[str, LateCounts]
    outbox: Mapping[str, Mapping[MessageState, int]]
    computed_by_spark: Mapping[str, str]
    stopped: Sequence[str]
    acknowledged: Acknowledged
    metrics: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def pending_files(self) -> int:
        """Return how many files wait to be ingested."""
        return sum(self.pending.values())

    @property
    def late_rows(self) -> int:
        """Return how many rows wait for a decision."""
        return sum(count.waiting for count in self.late.values())

    @property
    def rows_ahead(self) -> int:
        """Return how many rows wait for their day."""
        return sum(count.ahead for count in self.late.values())

    @property
    def is_new(self) -> bool:
        """Return whether no table has a day yet."""
        return not any(table.days for table in self.tables)

    @property
    def needs_a_look(self) -> bool:
        """Return whether a person should do something."""
        incomplete = any(table.missing or table.stale for table in self.tables)
        given_up = any(counts.get("given up") for counts in self.outbox.values())
        refused, left = self.acknowledged.without(self.refused.there), self.acknowledged.without(self.landing)
        return any((self.held, refused, left, self.late_rows, given_up, incomplete, self.stopped))

    @property
    def acknowledgements(self) -> tuple[Acknowledgement, ...]:
        """Return the acknowledgements of present files and warnings."""
        found: list[Finding] = [*self.landing, *self.refused.there, *self.warned]
        return tuple(dict.fromkeys(made for each in found if (made := self.acknowledged.of(each))))


def look(platform: Platform, *, with_metrics: bool) -> Status:
    """Read the state of a platform at one moment, without Spark.

    Args:
        with_metrics: whether to add the figures of single days, for programs.
    """
    snapshot = LakeSnapshot.now(platform)
    tables = _table_statuses(snapshot)
    listed = {each.name: list_arrivals(platform, each) for each in platform.catalogue if each.source}
    listings = listed.values()
    root = landing_problem(platform.settings, platform.catalogue)
    in_folders = (problem for listing in listings for problem in (*listing.problems, *listing.growing))
    return Status(
        tables=tables,
        held=held_days(platform, platform.ledger.holds()),
        warned=platform.ledger.warned(platform.catalogue.names, at=snapshot.number),
        refused=refused_files(platform),
        landing=([root] if root else []) + list(each_once(in_folders)),
        unread=unread_folders(platform.settings, platform.catalogue),
        pending={table: len(listing.pending) for table, listing in listed.items()},
        late=late_counts(platform),
        outbox=platform.ledger.outbox.open_by_target(),
        computed_by_spark=not_by_sail(platform, platform.catalogue.names),
        metrics=table_metrics(snapshot, {one.table: one.newest for one in tables}) if with_metrics else {},
        acknowledged=Acknowledged.now(platform),
        stopped=tuple(dict.fromkeys(hold.reason for hold in stopped(platform).values())),
    )


def _table_statuses(snapshot: LakeSnapshot) -> list[TableStatus]:
    """Return the state of each table; a raw table's days have no state, they exist or not."""
    platform, (tables, all_states) = snapshot.platform, look_at_all(snapshot)
    refused_rows = platform.ledger.refused_rows()
    totals = platform.ledger.counts.totals(platform.catalogue.names, at=snapshot.number)
    raw = [contract.name for contract in platform.catalogue if contract.source]
    marks = platform.ledger.marks(raw, at=snapshot.number)
    statuses: list[TableStatus] = []
    for contract in platform.catalogue:
        name, total = contract.name, totals[contract.name]
        loaded, states, delivered = tables.marks.get(name, {}), all_states.get(name, {}), marks.get(name, {})
        newest, days = total.newest, total.days
        if contract.source:  # not all of its days count, or not yet
            counting = loaded_days(contract, delivered, snapshot.delivered(name))
            newest, days = max(counting, default=None), len(counting)
        quiet = quiet_days(platform.catalogue, name, loaded, tables.calendar)
        if newest in quiet:
            later = (mark.day for mark in newest_of(loaded, len(quiet) + 1) if mark.day not in quiet)
            newest = max(later, default=None)
        delay = delays(platform.catalogue)[name]
        due = {day for day in tables.calendar.days() if days_later(day, delay) <= platform.settings.current_day()}
        blocked = {day: state for day, state in states.items() if isinstance(state, Blocked)}
        held = {day for day, state in states.items() if isinstance(state, Held)}
        missing = sorted(due.intersection(missing_days(name, tables)) - held)
        beyond = [day for day in delivered if platform.counted_on(name, day) not in tables.calendar]
        records = snapshot.days(name, beyond) if beyond else {}
        outside = {day: record.delivered for day, record in records.items() if record.delivered}
        status = TableStatus(
            table=name,
            newest=newest,
            days=days - len(quiet),
            missing=len(missing),
            awaited=tuple(missing) if contract.source else (),
            stale=sum(isinstance(state, Stale) for state in states.values()),
            held=len(held),
            blocked=sum(day in due for day, state in blocked.items() if state.otherwise or day not in loaded),
            rows=total.delivered - sum(outside.values()),
            quarantined=total.quarantined,
            refused=refused_rows.get(name, 0),
            days_outside=tuple(sorted(outside)),
        )
        statuses.append(status)
    return statuses


DAYS = 28
"""Newest days of a table, and newest recomputations, that metrics are about."""


def table_metrics(snapshot: LakeSnapshot, newest: Mapping[str, date | None]) -> dict[str, dict[str, object]]:
    """Return the metrics of tables for programs, with days as text.

    Args:
        newest: newest day of each table; tables without one have no metrics.

    Returns:
        By table the metrics and seconds of its `days`; of a raw table the `refused_share` of the rows that arrived on
        each date; what 95 of 100 do not exceed: `lag_of_arrival_days_p95` of these days, and `duration_s_p95` of the
        newest recomputations, without the start of Spark; None where nothing is known.
    """
    ledger = snapshot.platform.ledger
    took: dict[str, list[float]] = {table: [] for table in newest}
    for timing in ledger.counts.timings(newest):
        took[timing.table].append(timing.seconds)
    found: dict[str, dict[str, object]] = {}
    for table, last in newest.items():
        if last is None:
            continue
        among = [last - timedelta(days) for days in reversed(range(DAYS))]
        records = ledger.current_days(table, at=snapshot.number, among=among).values()
        days = {str(each.day): day_metrics(each.rows, each.figures) | {"seconds": each.seconds} for each in records}
        lags = [of_day["lag_of_arrival_days"] for of_day in days.values() if "lag_of_arrival_days" in of_day]
        found[table] = {
            "days": days,
            "refused_share": {
                str(on): share(*rows) for on, rows in ledger.counts.refused(table, since=among[0]).items()
            },
            "lag_of_arrival_days_p95": percentile_95(lags),
            "duration_s_p95": percentile_95(took[table][-DAYS:]),
        }
    return found
