"""Which arrivals a person means who wants them taken out again: by their names, or by a pattern of files of a table.

Also which days that changes, and which are stale through it: looked up beforehand, without Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase

from platform_assets.contracts import DAY
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.reading import row_reader
from platform_assets.planning.windows import day_range, union_reached
from platform_assets.records.history import ArrivalRecord

_WILD = frozenset("*?[")


class WithdrawalError(PlatformError):
    """There is nothing to take back."""


def named_arrivals(platform: Platform, names: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of arrivals that are to be withdrawn, each once.

    Args:
        names: paths of arrivals; or patterns, in which `*`, `?` and `[…]` stand for what lies within a folder's or a
            file's name, below the landing folder of a table. A path that is on record is itself and no pattern.

    Raises:
        WithdrawalError: one of them was never taken, was refused whole, is a withdrawal itself or was withdrawn before;
            or a pattern matches no delivery that counts, or reaches beyond one landing folder.
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
    """Return the newest records of arrivals that were not withdrawn yet, by table that took any of them.

    What entered of their waiting rows, because a person approved them or their day had come, is with them.

    Raises:
        WithdrawalError: there is none of one of them.
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
    parts = pattern.split("/")
    gone = {(arrival.table, arrival.origin) for arrival in arrivals if arrival.kind == "withdrawal"}
    newest = {(arrival.table, arrival.path): arrival for arrival in arrivals if arrival.kind == "delivery"}
    found = {
        path
        for (table, path), arrival in newest.items()
        if arrival.reason is None and (table, path) not in gone and _is_like(path.split("/"), parts)
    }
    if not found:
        raise WithdrawalError(
            f"No file that was taken and still counts is like {pattern!r}.",
            f"{near}`*` stands for no slash: write '<folder>/<arrival date>/*.csv', in quotes.",
        )
    return sorted(found)


def _is_like(path: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatchcase, path, pattern))


def _counting(platform: Platform, path: str, arrivals: Sequence[ArrivalRecord]) -> list[ArrivalRecord]:
    """Return the newest record of an arrival in each table from which it was not withdrawn yet."""
    newest = {arrival.table: arrival for arrival in arrivals if arrival.path == path}
    if not newest:
        raise WithdrawalError(
            f"No arrival {path!r} was ever taken.",
            did_you_mean(path, {arrival.path for arrival in arrivals})
            + "Name a file as <folder>/<arrival date>/<file>, as it lies in the landing area.",
        )
    gone = {arrival.table: arrival for arrival in arrivals if arrival.kind == "withdrawal" and arrival.origin == path}
    counts = [
        arrival
        for arrival in newest.values()
        if arrival.reason is None and arrival.kind != "withdrawal" and arrival.table not in gone
    ]
    if not counts:
        raise _nothing_counts(platform, path, next(iter(newest.values())), next(iter(gone.values()), None))
    # A table that no domain declares any more keeps no other from being mended.
    return [arrival for arrival in counts if arrival.table in platform.catalogue.names] or counts


def _nothing_counts(
    platform: Platform, path: str, arrival: ArrivalRecord, withdrawn: ArrivalRecord | None
) -> WithdrawalError:
    """Return why nothing can be taken back of an arrival that is on record."""
    if withdrawn is not None:
        made = platform.ledger.publication(withdrawn.publication)
        assert made is not None
        return WithdrawalError(
            f"{path} was withdrawn before, on {made.created_at:%Y-%m-%d} by {made.who}: {made.why}.",
            "Nothing is left to take back.",
        )
    if arrival.kind == "withdrawal":
        return WithdrawalError(
            f"{path} is itself the withdrawal of {arrival.origin}.",
            "Deliver that file again under another name if its rows are to count after all.",
        )
    return WithdrawalError(
        f"{path} was refused whole, so nothing of it counts: it {arrival.reason}.",
        "Nothing needs to be taken back; deliver a repaired file under the same name.",
    )


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
    """What it means that arrivals of one raw table are taken out.

    Args:
        days: of the raw table, that have rows of them.
        stale: computed days that read these, by table, inputs first: at most, since one whose input comes out as it was
            is left as it is.
        moves_within_days: so far from these days, older versions of their records may come back on others.
    """

    days: frozenset[date]
    stale: dict[str, frozenset[date]] = field(default_factory=dict)
    moves_within_days: int = 0


def reached_by(platform: Platform, parts: Sequence[ArrivalRecord]) -> Reached:
    """Return what taking some arrivals out of one raw table reaches.

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
    """Days of a raw table that were published together with some arrivals: all that may hold rows of them."""
    made = [platform.ledger.publication(name) for name in {part.publication for part in parts}]
    return {day.day for record in made if record is not None for day in record.days if day.table == table}


def _days_of(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    paths, days = {part.path for part in parts}, set[date]()
    with row_reader(platform.lake, table, (DAY, "_arrival"), days=published_with(platform, table, parts)) as batches:
        for batch in batches:
            if batch.num_rows and paths & {*batch.column("_arrival").unique().to_pylist()}:
                days.add(batch.column(DAY)[0].as_py())  # a file has one
    return days
