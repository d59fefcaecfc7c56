"""`status`: loaded, missing, stale and held days and rows set aside, per table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Annotated

import typer

from platform_assets.cli.console import platform_to_look
from platform_assets.cli.held_view import (
    by_spark_parts,
    growing_lines,
    held_json,
    held_parts,
    left_parts,
    refused_json,
    warned_days_parts,
    warned_tables_parts,
    warnings_json,
)
from platform_assets.cli.options import AsJson
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.circuits import stopped
from platform_assets.engine.ingest.aside import RefusedFiles, refused_files
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.pending import (
    each_once,
    landing_problem,
    list_arrivals,
    unread_folders,
)
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import look_at_all
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.planning.arrivals import delays, loaded_days
from platform_assets.planning.day_states import Blocked, Held, Stale, missing_days
from platform_assets.planning.windows import days_later, which
from platform_assets.planning.windows import newest as newest_of
from platform_assets.quality.baseline import quiet_days
from platform_assets.quality.deliveries import remedy
from platform_assets.quality.findings import day_metrics, percentile_95, share
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import Arrival
from platform_assets.records.outbox import MessageState
from platform_assets.report import Cell, Mark, Note, Part, Report, Table, picked, plain
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

_SHOWN = 5


def status(
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Only what gates found of published days, the newest published first.")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Only each file that was not taken or was refused, with the reason.")
    ] = False,
    as_json: AsJson = False,
) -> Report:
    """Show what is loaded, missing, stale, held and set aside; exit code 1 if something needs a look."""
    with platform_to_look() as platform:
        if warnings:
            warned = platform.ledger.warned(platform.catalogue.names, at=platform.current_release().number)
            return Report(warned_days_parts(warned), warnings_json(warned))
        known = _status(platform, with_metrics=as_json)
    return Report(_files_parts(known) if files else status_parts(known), known.json(), known.needs_a_look)


def _status(platform: Platform, *, with_metrics: bool) -> Status:
    snapshot = LakeSnapshot.now(platform)
    tables = _table_statuses(snapshot)
    counts = late_counts(platform).values()
    listings = [list_arrivals(platform, contract) for contract in platform.catalogue if contract.source]
    root = landing_problem(platform.settings, platform.catalogue)
    in_folders = (problem for listing in listings for problem in (*listing.problems, *listing.growing))
    return Status(
        tables=tables,
        held=held_days(platform, platform.ledger.holds()),
        warned=platform.ledger.warned(platform.catalogue.names, at=snapshot.number),
        refused=refused_files(platform),
        landing=([root] if root else []) + list(each_once(in_folders)),
        unread=unread_folders(platform.settings, platform.catalogue),
        pending_files=sum(len(listing.pending) for listing in listings),
        late_rows=sum(count.waiting for count in counts),
        rows_ahead=sum(count.ahead for count in counts),
        outbox=platform.ledger.outbox.open_by_target(),
        computed_by_spark=not_by_sail(platform, platform.catalogue.names),
        metrics=table_metrics(snapshot, {one.table: one.newest for one in tables}) if with_metrics else {},
        stopped=tuple(dict.fromkeys(hold.reason for hold in stopped(platform).values())),
    )


def _table_statuses(snapshot: LakeSnapshot) -> list[TableStatus]:
    """Return where each table stands; a raw table's days have no state, they are there or are not."""
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


@dataclass(frozen=True)
class TableStatus:
    """Keep where a table stands.

    Args:
        days: loaded days, empty ones included, but not those on which nothing was expected and nothing came.
        missing: days of the calendar that are not loaded and should be, without those that are held.
        stale: days that would become something else, and can be computed; those that never were among them.
        blocked: days that should be computed, and wait for days that they read.
        days_outside: days of a raw table with rows that the calendar does not have, oldest first; not counted as rows.
        awaited: the missing days of a raw table.
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
    """All that `status` shows; `metrics` only for programs."""

    tables: Sequence[TableStatus]
    held: Sequence[HeldDay]
    warned: Sequence[DayRecord]
    refused: RefusedFiles
    landing: Sequence[Problem]
    unread: Mapping[str, str]
    pending_files: int
    late_rows: int
    rows_ahead: int
    outbox: Mapping[str, Mapping[MessageState, int]]
    computed_by_spark: Mapping[str, str]
    stopped: Sequence[str]
    metrics: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Return whether no table has a day yet."""
        return not any(table.days for table in self.tables)

    @property
    def needs_a_look(self) -> bool:
        """Return whether a person should do something."""
        incomplete = any(table.missing or table.stale for table in self.tables)
        given_up = any(counts.get("given up") for counts in self.outbox.values())
        return any((self.held, self.refused.there, self.landing, self.late_rows, given_up, incomplete, self.stopped))

    def json(self) -> dict[str, object]:
        """Return all of it for programs."""
        refused = self.refused
        return picked(
            self,
            "tables landing pending_files late_rows rows_ahead computed_by_spark stopped metrics",
            held=[plain(day.hold) | held_json(day) for day in self.held],
            warnings=warnings_json(self.warned),
            refused_files=refused_json(refused.there),
            refused_files_gone=refused_json(refused.gone),
            refused_files_repaired=[picked(file, "table path reason", by=by) for file, by in refused.repaired.items()],
            files_with_many_refused=[picked(file, "path landed refused") for file in refused.in_large_part],
            unread_folders=list(self.unread),
            outbox={
                target: {"waiting": counts.get("waiting", 0), "given_up": counts.get("given up", 0)}
                for target, counts in self.outbox.items()
            },
        )


def status_parts(known: Status) -> Iterator[Part]:
    """Show the tables, then what needs a look, files before rows."""
    if known.is_new:
        where = "no file waits that can be taken: docs/first-table.md says where they go"
        wait = (
            f"{counted(known.pending_files, 'file', 'wait')}: run `platform-assets refresh`"
            if known.pending_files
            else where
        )
        yield Note("bold", "Nothing was loaded yet;", f"{wait}.")
    yield from (Note("red", "stopped", sentence) for sentence in known.stopped)
    yield from _tables_parts(known)
    yield from _of_files_parts(known)
    yield from _rows_parts(known)
    for target, counts in known.outbox.items():
        if given_up := counts.get("given up", 0):
            took = f"{counted(given_up, 'message')} to {target}, not delivered: platform-assets outbox list"
            yield Note("red", "given up", took)
        if waiting := counts.get("waiting", 0):
            yield Note("", "to send", f"{target}: {counted(waiting, 'message', 'wait')} to be delivered")
    yield from by_spark_parts(known.computed_by_spark)
    if known.pending_files and not known.is_new:
        yield f"{counted(known.pending_files, 'file', 'wait')} to be ingested: `platform-assets refresh` takes them."


def _files_parts(known: Status) -> Iterator[Part]:
    for problem in known.landing:
        yield Note("yellow", f"not taken{' yet' if problem.is_growing else ''}", f"{problem.path} {problem.message}")
    yield from (Note("red", "refused", f"{file.path} {file.reason}") for file in known.refused.there)
    yield from (Note("yellow", "refused", _in_large_part(file)) for file in known.refused.in_large_part)
    yield from (Note("", "taken away", f"{file.path} {file.reason}") for file in known.refused.gone)
    for file, other in known.refused.repaired.items():
        why = file.reason or "was refused in large part"
        yield Note("", "repaired", f"{file.path} {why}; {other} was taken since")


def _tables_parts(known: Status) -> Iterator[Part]:
    counts = ("days", "missing", "held", "rows", "aside")
    names = ("table", "newest", *counts)
    rows = [
        (
            table.table,
            str(table.newest or "-"),
            f"{table.days:,}",
            _alarm(table.missing),
            _alarm(table.held),
            f"{table.rows:,}",
            f"{aside:,}" if (aside := table.quarantined + table.refused) else "",
        )
        for table in known.tables
    ]
    yield Table("Tables as readers see them", names, rows, counts, names)
    if shown_by := [
        dead_letters(table.table)
        for table in known.tables
        for dead_letters, rows in ((quarantine_table, table.quarantined), (refused_table, table.refused))
        if rows
    ]:
        more = f", and so on with {', '.join(shown_by[1:])}." if shown_by[1:] else "."
        yield (
            "aside: rows that readers of the table do not see: in quarantine, because they broke a rule, or refused, "
            f"because they could not be read. `platform-assets read {shown_by[0]}` shows them{more}"
        )
    yield from held_parts(known.held, in_short=True)
    for table in known.tables:
        if table.awaited and not known.is_new:
            yield Note("yellow", "not delivered yet", f"{table.table}: {which(table.awaited)}")
        if table.stale:
            yield Note(
                "yellow", "stale", f"{table.table}: {counted(table.stale, 'day')}; platform-assets stale says why"
            )
        if table.blocked and not known.is_new:
            why = f"{'a circuit is open, or ' if known.stopped else ''}days that they read are missing or held"
            waits = f"{counted(table.blocked, 'day')} cannot be computed: {why}"
            yield Note("yellow", "blocked", f"{table.table}: {waits}")


def _of_files_parts(known: Status) -> Iterator[Part]:
    refused = known.refused
    yield from left_parts([problem for problem in known.landing if not problem.is_growing], refused.there)
    yield from (Note("yellow", "refused", _in_large_part(file)) for file in refused.in_large_part[:_SHOWN])
    if (more := len(refused.in_large_part) - _SHOWN) > 0:
        many = f"many rows of {counted(more, 'more file')}; `platform-assets status --files` names them"
        yield Note("yellow", "refused", many)
    if refused.gone:
        gone = counted(len({file.path for file in refused.gone}), "refused file")
        away = f"{gone}, no longer in the landing area; `platform-assets status --files` says which and why"
        yield Note("", "taken away", away)
    growing = growing_lines([problem for problem in known.landing if problem.is_growing])
    yield from (Note("yellow", "not taken yet", line) for line in growing)
    for folder, meant in known.unread.items():
        did = f"; did you mean {meant}?" if meant else ""
        no_table = f"{folder}: no table takes files from this folder of the landing area{did}"
        yield Note("yellow", "not read", no_table)


def _rows_parts(known: Status) -> Iterator[Part]:
    yield from warned_tables_parts(known.warned)
    if known.late_rows:
        yield Note(
            "yellow", "late", f"{counted(known.late_rows, 'row', 'wait')} for a decision: platform-assets late list"
        )
    if known.rows_ahead:
        yield Note(
            "", "ahead", f"{counted(known.rows_ahead, 'row', 'wait')} for the day to come: platform-assets late list"
        )
    for table in known.tables:
        if days_outside := table.days_outside:
            days = f"{counted(len(days_outside), 'day')} that the calendar does not have, {which(days_outside)}"
            yield Note("", "outside", f"{table.table} has rows of {days}")


def _in_large_part(file: Arrival) -> str:
    rows = f"{file.refused:,} of its {counted(file.landed, 'row')} {'was' if file.refused == 1 else 'were'} refused"
    shown = f"`platform-assets read {refused_table(file.table)}` shows them"
    return f"{file.path}: {rows}: {shown}; {remedy([file], file.landed)}"


def _alarm(count: int) -> Cell:
    return Mark(f"{count:,}", "red") if count else "0"


DAYS = 28
"""Newest days of a table, and newest recomputations, that metrics are about."""


def table_metrics(snapshot: LakeSnapshot, newest: Mapping[str, date | None]) -> dict[str, dict[str, object]]:
    """Return the metrics of tables, for programs, which know days as text.

    Args:
        newest: day of each table; tables without one have no metrics.

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
