"""Present state of the late queue, read from the released files and the ledger, without a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.calendar import why_protected
from platform_assets.contracts.table import amounts
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.schema_changes import takes_deliveries
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.reading import row_reader
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.rows_aside import (
    LateCounts,
    LateRows,
    LateSelection,
    State,
    counts_of,
    deep_restatement,
    due_rows,
    late_table,
    open_to,
)
from platform_assets.planning.windows import day_range, union_reached
from platform_assets.records.decisions import LateDecision, Verdict
from platform_assets.records.history import ArrivalRecord

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


_About = tuple[str, str, date]
"""Raw table, arrival and day."""

_SMALL_DIGITS = 29
"""Most digits of an amount: a billion of them have a sum of 38 digits, the limit."""


class LateQueueError(PlatformError):
    """A decision about late rows cannot be made."""


def late_queue(platform: Platform) -> tuple[LateRows, ...]:
    """Return all rows of the late queue of every raw table, by table, day and arrival."""
    now = platform.current_release()
    return tuple(rows for contract in raw_tables(platform) for rows in _queue(platform, contract, now))


def late_counts(platform: Platform) -> dict[str, LateCounts]:
    """Return how many rows of each raw table wait. Reads rows only if there are decisions about some."""
    now = platform.current_release()
    decisions = _decisions(platform, as_far_as_readable=True)
    refused = {decision.table for decision in decisions.values() if decision.kind == "refusal"}
    counts: dict[str, LateCounts] = {}
    contracts = raw_tables(platform)
    queued = platform.ledger.counts.totals([late_table(contract.name) for contract in contracts], at=now.number)
    for contract in contracts:
        if contract.name in refused or platform.ledger.withdrawn(contract.name):
            counts[contract.name] = counts_of(_queue(platform, contract, now, decisions))
        else:
            waiting = queued[late_table(contract.name)]
            counts[contract.name] = LateCounts(waiting.delivered - waiting.ahead, waiting.ahead)
    return counts


def raw_tables(platform: Platform) -> tuple[Contract, ...]:
    """Return the tables that ingest arrivals."""
    return tuple(contract for contract in platform.catalogue if contract.source is not None)


def choose(platform: Platform, verdict: Verdict, selection: LateSelection) -> tuple[LateRows, ...]:
    """Return the selected rows that still need such a decision.

    Raises:
        LateQueueError: the table takes no arrivals, the arrival is not known, or nothing selected waits.
    """
    queue = late_queue(platform)
    if rows := open_to(verdict, queue, selection):
        return rows
    if selection.table is not None and platform.catalogue[selection.table].source is None:
        raise LateQueueError(
            f"{selection.table} takes no arrivals, so nothing can be late for it.",
            f"Name one of {', '.join(contract.name for contract in raw_tables(platform))}.",
        )
    raise LateQueueError(
        f"Nothing of {selection} waits in the late queue.",
        "See what waits with `platform-assets status late`, and what was decided with `status late --all`.",
    )


def due(snapshot: LakeSnapshot, contract: Contract) -> tuple[LateRows, ...]:
    """Return the waiting rows of a raw table that came too far ahead of their day, which has come.

    If there are none, the ledger alone says so.
    """
    queue, last = snapshot.days(late_table(contract.name)), snapshot.calendar.last
    if not any(record.figures.get(AHEAD) for day, record in queue.items() if day <= last):
        return ()
    return due_rows(_queue(snapshot.platform, contract, snapshot.release), last)


def days_due(snapshot: LakeSnapshot, contract: Contract) -> tuple[date, ...]:
    """Return the days of such rows, oldest first."""
    return tuple(sorted({rows.day for rows in due(snapshot, contract)}))


def deep_restatements(platform: Platform, queue: Collection[LateRows]) -> tuple[LateSelection, ...]:
    """Select the rows that contracts leave to the periodic deep restatement, by raw table."""
    snapshot = LakeSnapshot.now(platform)
    selections = (
        deep_restatement(queue, contract.name, most)
        for contract in raw_tables(platform)
        if (most := contract.deep_restatement_days) is not None and takes_deliveries(snapshot, contract)
    )
    return tuple(selection for selection in selections if selection)


def refuse(platform: Platform, selection: LateSelection, author: Author) -> tuple[LateRows, ...]:
    """Refuse late rows; they remain in the queue, accounted for.

    Returns:
        What was refused.
    """
    tables = {rows.table for rows in choose(platform, "refusal", selection)}
    with ExitStack() as locks:
        for table in sorted(tables):
            locks.enter_context(ingest_lock(platform.lake, table))
        platform.settle()
        chosen = choose(platform, "refusal", selection)
        decide(platform, "refusal", chosen, author)
    return chosen


def decide(platform: Platform, verdict: Verdict, chosen: Collection[LateRows], author: Author) -> None:
    """Record a person's decision; an identical decision in force is not written again."""
    standing = _decisions(platform)
    now = datetime.now(UTC)
    for rows in chosen:
        decision = standing.get(_about(rows))
        if decision is None or decision.kind != verdict:
            platform.ledger.decide(LateDecision(verdict, *_about(rows), **author.signature(now)))


def _queue(
    platform: Platform,
    contract: Contract,
    release: Release,
    decisions: Mapping[_About, LateDecision] | None = None,
) -> list[LateRows]:
    table = late_table(contract.name)
    if not any(day.rows for day in platform.ledger.current_days(table, at=release.number).values()):
        return []
    decisions = _decisions(platform) if decisions is None else decisions
    gone = platform.ledger.withdrawn(contract.name)
    names = amounts(contract)
    with row_reader(platform.lake, table, ("_arrival", "_arrival_date", DAY, *names), release) as rows:
        queued = list(added_up(contract.name, rows, names))
    queue = (_with_state(rows, contract, decisions, gone) for rows in queued)
    return sorted(queue, key=lambda rows: (rows.day, rows.arrival))


def added_up(table: str, queue: ds.Dataset | pa.RecordBatchReader, names: Collection[str]) -> Iterator[LateRows]:
    """Return sums of each arrival's rows by day; DuckDB adds them up while reading, so memory stays small.

    Args:
        names: columns to sum up; approximately for doubles.
    """
    import duckdb

    scales = {n: getattr(queue.schema.field(n).type, "scale", None) for n in names if n in queue.schema.names}
    sums = "".join(
        f', sum("{name}") FILTER ({small}), sum("{name}"::DOUBLE) FILTER (NOT {small})'
        for name, scale in scales.items()
        for small in ["true" if scale is None else f'abs("{name}"::DOUBLE) < 1e{_SMALL_DIGITS - scale}']
    )
    with duckdb.connect() as database:
        grouped = database.from_arrow(queue).aggregate(
            f"_arrival, _arrival_date, {DAY}, count(*){sums}", f"_arrival, _arrival_date, {DAY}"
        )
        for arrival, arrival_date, day, rows, *amounts in grouped.fetchall():
            parts = zip(scales.items(), amounts[::2], amounts[1::2], strict=True)
            by_name = {
                name: exact or 0 if scale is None else (exact or Decimal(0)) + Decimal(rough or 0)
                for (name, scale), exact, rough in parts
            }
            yield LateRows(table, arrival, arrival_date, day, rows, by_name)


def _with_state(
    rows: LateRows, contract: Contract, decisions: Mapping[_About, LateDecision], gone: Collection[str | None]
) -> LateRows:
    since = tuple(period for period in contract.protected if rows.arrival_date > period.since)
    state: State = "ahead" if rows.is_ahead else "waiting"
    decided = ""
    decision = decisions.get(_about(rows))
    if rows.arrival in gone:
        state = "withdrawn"
    elif decision is not None and decision.kind == "refusal":
        state, decided = "refused", f"{decision.who}: {decision.reason}"
    return replace(rows, state=state, decided=decided, protected=why_protected(since, rows.day))


def _decisions(platform: Platform, *, as_far_as_readable: bool = False) -> dict[_About, LateDecision]:
    """Return the newest decision about the rows of each arrival and day."""
    decisions = platform.ledger.decisions(LateDecision, as_far_as_readable=as_far_as_readable)
    return {_about(decision): decision for decision in decisions}


def _about(rows: LateRows | LateDecision) -> _About:
    return rows.table, rows.arrival, rows.day


_WILD = frozenset("*?[")


class WithdrawalError(PlatformError):
    """There is nothing to withdraw."""


def named_arrivals(platform: Platform, names: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of arrivals to withdraw, each once.

    Args:
        names: paths of arrivals; or patterns, in which `*`, `?` and `[…]` stand for a part of a folder's or file's
            name, below the landing folder of a table. A recorded path is never a pattern.

    Raises:
        WithdrawalError: one of them was never ingested, was refused whole, is a withdrawal itself or was withdrawn
            before; or a pattern matches no valid delivery, or reaches beyond one landing folder.
    """
    arrivals = platform.ledger.arrivals()
    recorded = {arrival.path for arrival in arrivals}
    paths: dict[str, None] = {}
    for name in names:
        if name in recorded or not _WILD & set(name):
            standing_records(platform, [name])
            paths[name] = None
        else:
            paths |= dict.fromkeys(_matching(platform, name, arrivals))
    return tuple(paths)


def standing_records(platform: Platform, paths: Sequence[str]) -> Mapping[str, tuple[ArrivalRecord, ...]]:
    """Return the newest records of arrivals that are not withdrawn, by table that ingested any of them.

    They include arrivals of their waiting rows, which a person approved or whose day had come.
    """
    arrivals = platform.ledger.arrivals()
    parts: defaultdict[str, dict[str, ArrivalRecord]] = defaultdict(dict)
    for path in paths:
        for arrival in _counting(platform, path, arrivals):
            entered = _entered_later(arrival, arrivals)
            parts[arrival.table] |= {part.path: part for part in (arrival, *entered)}
    return {table: tuple(by_path.values()) for table, by_path in sorted(parts.items())}


def _matching(platform: Platform, pattern: str, arrivals: Sequence[ArrivalRecord]) -> list[str]:
    # Brackets may be those of a name that is misspelt.
    near = did_you_mean(pattern, {arrival.path for arrival in arrivals})
    folders = {contract.source.folder for contract in platform.catalogue if contract.source}
    if not any(pattern.startswith(f"{folder}/") for folder in folders):
        raise WithdrawalError(
            f"The pattern {pattern!r} is not of the files of one table.",
            f"{near}Begin it with the landing folder of one: {', '.join(f'{folder}/' for folder in sorted(folders))}.",
        )
    gone = {(arrival.table, arrival.origin) for arrival in arrivals if arrival.kind == "withdrawal"}
    newest = {(arrival.table, arrival.path): arrival for arrival in arrivals if arrival.kind == "delivery"}
    found = {
        path
        for (table, path), arrival in newest.items()
        if arrival.reason is None
        and (table, path) not in gone
        and path.count("/") == pattern.count("/")
        and all(map(fnmatchcase, path.split("/"), pattern.split("/")))
    }
    if not found:
        raise WithdrawalError(
            f"No ingested file matches {pattern!r}.",
            f"{near}`*` does not match `/`: write '<folder>/<arrival date>/*.csv', in quotes.",
        )
    return sorted(found)


def _counting(platform: Platform, path: str, arrivals: Sequence[ArrivalRecord]) -> list[ArrivalRecord]:
    """Return the newest record of an arrival in each table from which it is not withdrawn."""
    newest = {arrival.table: arrival for arrival in arrivals if arrival.path == path}
    if not newest:
        raise WithdrawalError(
            f"No arrival {path!r} was ever taken.",
            did_you_mean(path, {arrival.path for arrival in arrivals})
            + "Name a file as <folder>/<arrival date>/<file>, as it lies in the landing area.",
        )
    gone = {arrival.table for arrival in arrivals if arrival.kind == "withdrawal" and arrival.origin == path}
    counts = [
        arrival
        for arrival in newest.values()
        if arrival.reason is None and arrival.kind != "withdrawal" and arrival.table not in gone
    ]
    if not counts:
        raise WithdrawalError(
            f"Nothing of {path} counts: it was refused whole, is a withdrawal itself, or was withdrawn before.",
            "Nothing needs to be taken back; `platform-assets status decisions` shows who withdrew what.",
        )
    # A table that no domain declares any more keeps no other from being mended.
    return [arrival for arrival in counts if arrival.table in platform.catalogue.names] or counts


def _entered_later(arrival: ArrivalRecord, arrivals: Sequence[ArrivalRecord]) -> list[ArrivalRecord]:
    mine = [other for other in arrivals if other.table == arrival.table]
    gone = {other.origin for other in mine if other.kind == "withdrawal"}
    entered = [other for other in mine if other.kind in ("approval", "due", "replay") and other.path not in gone]
    found = [arrival]
    for part in found:  # late rows of what was replayed enter as part of that
        found += [other for other in entered if other.origin == part.path]
    return found[1:]


@dataclass(frozen=True)
class Reached:
    """Effect of withdrawing arrivals of one raw table.

    Args:
        days: days of the raw table with their rows.
        stale: computed days that read these, by table, inputs first: an upper bound, since a day whose input comes out
            unchanged is skipped.
        moves_within_days: older versions of their records may come back on days this far away.
    """

    days: frozenset[date]
    stale: dict[str, frozenset[date]] = field(default_factory=dict)
    moves_within_days: int = 0


def reached_by(platform: Platform, parts: Sequence[ArrivalRecord]) -> Reached:
    """Return the effect of withdrawing some arrivals from one raw table.

    Raises:
        DamagedTableError: files of the raw table are gone.
    """
    table = parts[0].table
    days = frozenset(_days_of(platform, table, parts)) if any(part.taken for part in parts) else frozenset[date]()
    changed: dict[str, Collection[date]] = {table: {platform.counted_on(table, day) for day in days}}
    for contract in platform.catalogue:
        reached = {
            day
            for read in contract.inputs
            if changed.get(read.table)
            for span in union_reached(read.window, changed[read.table], platform.calendar)
            for day in day_range(*span)
        }
        if reached and (there := reached & platform.ledger.current_days(contract.name, among=reached).keys()):
            changed[contract.name] = there
    stale = {name: frozenset(of_it) for name, of_it in changed.items() if name != table}
    return Reached(days, stale, platform.catalogue[table].moves_within_days)


def published_with(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    """Return days of a raw table published together with some arrivals: all that may hold rows of them."""
    made = [platform.ledger.publication(name) for name in {part.publication for part in parts}]
    return {day.day for record in made if record is not None for day in record.days if day.table == table}


def _days_of(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    paths, days = {part.path for part in parts}, set[date]()
    with row_reader(platform.lake, table, (DAY, "_arrival"), days=published_with(platform, table, parts)) as batches:
        for batch in batches:
            if batch.num_rows and paths & {*batch.column("_arrival").unique().to_pylist()}:
                days.add(batch.column(DAY)[0].as_py())  # a file has one
    return days
