"""Rows set aside at present, read from released files and the ledger, without a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from operator import attrgetter

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.reading import row_reader
from platform_assets.planning.rows_aside import WHOLE_FILE, AsideRow, AsideSelection
from platform_assets.quality.deliveries import error_class, much_refused, repaired_by
from platform_assets.records.decisions import QuarantineDecision
from platform_assets.records.history import ArrivalRecord
from platform_assets.sources.listing import landing_area

_COLUMNS = ("_arrival", "_reason", "_row", "_place", "_attempts", DAY)


class QuarantineError(PlatformError):
    """The request to show, replay or discard rows cannot be done; nothing was changed."""


def aside(
    platform: Platform, selection: AsideSelection, *, everything: bool = False, payloads: bool = False
) -> tuple[AsideRow, ...]:
    """Return the rows set aside, those of each table by day, arrival and number.

    Args:
        everything: include discarded rows.

    Raises:
        QuarantineError: its rows are never set aside.
    """
    contracts = [platform.catalogue[selection.table]] if selection.table else list(platform.catalogue)
    if selection.table and contracts[0].layer == "gold":
        raise QuarantineError(
            f"{selection.table} sets no rows aside: its rows are computed.",
            "Name a raw table, which refuses what it cannot read, or a silver table, whose rules quarantine rows.",
        )
    decisions = _decisions(platform)
    found: list[AsideRow] = []
    for contract in contracts:
        rows = _rows(platform, contract, selection.days, payloads=payloads) if contract.layer != "gold" else ()
        decided = _standing(platform, contract, [made for made in decisions if made.table == contract.name])
        for row in sorted(filter(selection.has, rows), key=lambda row: (row.day, row.arrival, row.number or 0)):
            made = decided.get((row.arrival, row.day, row.error))
            if made is None or everything:
                found.append(replace(row, discarded=f"{made.who}: {made.reason}") if made else row)
    return tuple(found)


def chosen(
    platform: Platform, selection: AsideSelection, *, everything: bool = False, payloads: bool = False
) -> tuple[AsideRow, ...]:
    """Return the selected rows, as `aside` does."""
    if rows := aside(platform, selection, everything=everything, payloads=payloads):
        return rows
    others = aside(platform, AsideSelection(selection.table), everything=True)
    near = did_you_mean(selection.error or "", {row.error for row in others})
    near = near or did_you_mean(selection.arrival or "", {row.arrival for row in others})
    before = ": a person discarded it" if any(map(selection.has, others)) else ""
    raise QuarantineError(
        f"No rows of {selection} are set aside{before}.", f"{near}`platform-assets status quarantine --all` shows all."
    )


def open_rows(platform: Platform, table: str) -> Counter[str] | None:
    """Count the refused rows of each arrival that were not discarded; None if none was replayed or discarded."""
    is_replayed = any(arrival.kind == "replay" for arrival in platform.ledger.arrivals(table))
    if not is_replayed and all(decision.table != table for decision in _decisions(platform)):
        return None
    counts: Counter[str] = Counter()
    for row in aside(platform, AsideSelection(table)):
        counts[row.arrival] += row.rows
    return counts


def _decisions(platform: Platform) -> tuple[QuarantineDecision, ...]:
    return platform.ledger.decisions(QuarantineDecision, as_far_as_readable=True)


def _standing(
    platform: Platform, contract: Contract, decisions: Collection[QuarantineDecision]
) -> dict[tuple[str, date, str], QuarantineDecision]:
    """Return decisions by arrival, day and error, without those about an earlier version.

    A file that came again has no decisions from before; a silver day none from before its present quarantine.
    """
    made = {(each.arrival, each.day, each.error): each for each in decisions}
    ledger, since = platform.ledger, dict[str | date, str]()
    if made and contract.source:
        since |= {each.path: each.publication for each in ledger.arrivals(contract.name) if each.kind == "delivery"}
    elif made:
        histories = ledger.histories(quarantine_table(contract.name), {day for _, day, _ in made})
        alike = {day: next(groupby(records, attrgetter("digest")))[1] for day, records in histories.items() if records}
        since |= {day: [*records][-1].publication for day, records in alike.items()}
    about = {key: since.get(key[0] if contract.source else key[1], "") for key in made}
    heads = {name: ledger.head(name) for name in {*about.values()}}
    return {
        key: each for key, each in made.items() if (head := heads[about[key]]) and head.created_at < each.created_at
    }


def _rows(
    platform: Platform, contract: Contract, days: Collection[date] | None, *, payloads: bool
) -> Iterator[AsideRow]:
    letters = refused_table(contract.name) if contract.source else quarantine_table(contract.name)
    now = platform.current_release()
    rows: list[AsideRow] = []
    columns = (*_COLUMNS, "_payload") if payloads else _COLUMNS
    if letters in now.versions:
        with row_reader(platform.lake, letters, columns, now, days) as batches:
            for row in (row for batch in batches for row in batch.to_pylist()):
                texts = (row["_reason"], row["_arrival"], row["_reason"], row.get("_payload") or "")
                number, place, attempts = (row.get(name) for name in ("_row", "_place", "_attempts"))
                attempts = 1 if attempts is None else attempts
                rows.append(AsideRow(contract.name, row[DAY], *texts, 1, number, place, attempts))
    return _refused(platform, contract, rows) if contract.source else _quarantined(platform, contract, rows)


def _refused(platform: Platform, contract: Contract, rows: Collection[AsideRow]) -> Iterator[AsideRow]:
    """Yield refused rows of valid files, and files that were refused whole."""
    delivered = [arrival for arrival in platform.ledger.arrivals(contract.name) if arrival.kind == "delivery"]
    newest, times = {file.path: file for file in delivered}, Counter(file.path for file in delivered)
    gone = platform.ledger.withdrawn(contract.name)
    for row in rows:
        file = newest.get(row.arrival)
        if file and file.refused and row.attempts and row.arrival not in gone:
            yield replace(row, error=error_class(row.reason), attempts=max(row.attempts, times[row.arrival]))
    for path, file in newest.items():
        if file.reason is not None and not file.refused:
            whole = AsideRow(contract.name, file.arrival_date, WHOLE_FILE, path, file.reason, rows=file.landed)
            yield replace(whole, attempts=times[path])


def _quarantined(platform: Platform, contract: Contract, rows: Collection[AsideRow]) -> Iterator[AsideRow]:
    """Yield quarantined rows, each with all recomputations of its day that set it aside."""
    came = {each.path: each.publication for each in platform.ledger.arrivals(contract.inputs[0].table)} if rows else {}
    released = platform.ledger.indexed() if rows else {}
    histories = platform.ledger.histories(contract.name, {row.day for row in rows}) if rows else {}
    for row in rows:
        since = released.get(came.get(row.arrival, ""), -1)
        made = [each for each in histories.get(row.day, ()) if released.get(each.publication, -1) > since]
        yield replace(row, attempts=max(1, len({(each.fingerprint, each.made_by) for each in made})))


@dataclass(frozen=True)
class RefusedFiles:
    """Files that are refused, whole or in large part, by what there is to do about them.

    Args:
        there: in the landing area, or possibly there if it cannot be read: to be repaired, or removed.
        gone: removed since. The ledger keeps that they came, and why they were refused.
        in_large_part: ingested without so many rows that the file seems to be broken, and not withdrawn since.
        repaired: delivered again correctly under another name: with that name.
    """

    there: tuple[ArrivalRecord, ...] = ()
    gone: tuple[ArrivalRecord, ...] = ()
    in_large_part: tuple[ArrivalRecord, ...] = ()
    repaired: Mapping[ArrivalRecord, str] = field(default_factory=dict)


def refused_files(platform: Platform) -> RefusedFiles:
    """Return files without ingested rows, or with few, that were not delivered correctly since."""
    catalogue, ledger = platform.catalogue, platform.ledger
    standing = [file for file in ledger.arrivals(refused_only=True) if file.table in catalogue.names]
    standing = [file for file in standing if file.reason is not None or much_refused(catalogue[file.table], file)]
    tables = {file.table for file in standing}
    left = {table: rows for table in tables if (rows := open_rows(platform, table)) is not None}
    standing = [
        file.model_copy(update={"refused": left[file.table][file.path]}) if file.table in left else file
        for file in standing
        if file.table not in left or file.path in left[file.table]
    ]
    standing = [file for file in standing if file.reason is not None or much_refused(catalogue[file.table], file)]
    withdrawn = {table: ledger.withdrawn(table) for table in tables}
    good = {
        table: [
            file
            for file in ledger.arrivals(table)
            if file.kind == "delivery"
            and file.reason is None
            and file.path not in withdrawn[table]
            and not much_refused(catalogue[table], file)
        ]
        for table in tables
    }
    released = ledger.indexed() if standing else {}
    repairs = {file: repaired_by(file, good[file.table], released) for file in standing}
    area = landing_area(platform.settings)
    # If the root is missing, for example not mounted, it is unknown whether a file was removed.
    is_mounted = bool(standing) and area.is_there()
    open_still = [file for file in standing if not repairs[file]]
    refused = [file for file in open_still if file.reason is not None]
    taken = [file for file in open_still if file.reason is None]
    gone = {file.path for file in refused if is_mounted and area.has_gone(file.path)}
    return RefusedFiles(
        there=tuple(file for file in refused if file.path not in gone),
        gone=tuple(file for file in refused if file.path in gone),
        in_large_part=tuple(file for file in taken if file.path not in withdrawn[file.table]),
        repaired={file: others[-1].path for file, others in repairs.items() if others},
    )
