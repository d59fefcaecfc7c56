"""The audit of a lake: the chain, then every table through all releases, then its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from zlib import crc32

import pyarrow as pa

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import newest_release, published
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, opened, other_length
from platform_assets.operations.audit.chain import ChainAudit, ChainHead
from platform_assets.operations.audit.faults import Check, Findings, Scope
from platform_assets.operations.audit.tables import TableAudit
from platform_assets.planning.windows import as_named
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.manifest import DataFile


def look_at_files(table: TableAudit) -> None:
    """Check what the newest release shows of a table; with `every_release` also what older ones refer to."""
    rows: defaultdict[date, int] = defaultdict(int)
    broken: set[date] = set()
    for path, (file, of) in sorted(_looked_at(table)):
        counted = _rows(table, file, of)
        if path not in table.live:
            continue
        if counted is None:
            broken.add(of)
        else:
            rows[of] += counted
    for day, content in sorted(table.recorded.items(), key=str):
        if day and content.digest and table.scope.has_day(day) and day not in broken:
            table.findings.seen["rows"] += 1
            if rows[day] != content.rows:
                table.findings.fault(
                    "rows",
                    f"The files of {table.table} {day} hold {rows[day]:,} rows; {content.rows:,} were published.",
                    repair_of(table.table, day),
                    table=table.table,
                    day=day,
                )


def read_contents(tables: Sequence[TableAudit], budget: int | None, turn: int, progress: OnProgress) -> str:
    """Read files page by page: those of this turn, so that in as many turns as it takes every file is read once.

    Args:
        tables: after `look_at_files`; what that found damaged is not read.
        budget: about how many bytes are read in one turn; None is all.
        turn: the number of the day; the next day reads the next part.

    Returns:
        What a person should know about what was left out; empty if nothing was.
    """
    wanted = [
        (table, table.lake.table_path(table.table) / path, file, day)
        for table in tables
        for path, (file, day) in sorted(_looked_at(table))
    ]
    turns = turns_for(sum(file.size for _, _, file, _ in wanted), budget)
    broken = {fault.file for table in tables for fault in table.findings.faults}
    due = [each for each in wanted if crc32(f"{each[0].table}/{each[2].path}".encode()) % turns == turn % turns]
    for number, (table, place, file, day) in enumerate(due, start=1):
        progress(Progress("reading", "files", number, len(due), "file", finished=number == len(due)))
        if str(place) not in broken:
            table.findings.seen["contents"] += 1
            if problem := damage(place, file.size):
                _fault(table, "contents", file, day, place, problem)
    if turns == 1:
        return ""
    return (
        f"{len(due):,} of {len(wanted):,} files were read page by page; with one audit a day every file is read "
        f"within {turns:,} days. --read-mb reads more at once, --read-all everything."
    )


def turns_for(size: int, budget: int | None) -> int:
    """In how many turns so many bytes are read if each may read about so many, rounded up to a power of two.

    A lake that grows goes from one number of turns to its double: whoever came late in the old turns comes at the
    latest in the second half of the new ones. While less comes than is read, nothing is left out for longer than three
    times the old number.
    """
    if budget is None:
        return 1
    return 1 << max(0, -(-size // max(budget, 1)) - 1).bit_length()


def _looked_at(table: TableAudit) -> Iterator[tuple[str, tuple[DataFile, date]]]:
    older = table.every_file if table.scope.every_release else {}
    for path, (file, day) in {**older, **table.live}.items():
        if day is not None and table.scope.has_day(day):
            yield path, (file, day)


def _rows(table: TableAudit, file: DataFile, day: date) -> int | None:
    """Return how many rows a file holds; None if it is not what was published."""
    table.findings.seen["files"] += 1
    path = table.lake.table_path(table.table) / file.path
    problem = other_length(path, file.size)
    if not problem:
        try:
            with opened(path) as parquet:
                rows: int = parquet.metadata.num_rows
                return rows
        except (pa.ArrowInvalid, OSError) as error:
            problem = f"cannot be read ({str(error).splitlines()[0].rstrip('.')})"
    _fault(table, "files", file, day, path, problem)
    return None


def _fault(table: TableAudit, check: Check, file: DataFile, day: date, place: Location, problem: str) -> None:
    table.findings.fault(
        check,
        f"The file {file.path} of {table.table} {day} {problem}.",
        repair_of(table.table, day),
        table=table.table,
        day=day,
        file=place,
    )


def repair_of(table: str, *days: date) -> str:
    """Return what to do about days' content: what was delivered is nowhere else, the rest can be computed again."""
    if table.startswith(("silver.", "gold.")):
        named = ",".join(as_named(days))
        again = f"`platform-assets refresh {table} --days {named} --force`"
        whose, it = ("day's", "it") if len(days) == 1 else ("days'", "them")
        return f"Restore the {whose} files from a backup, or compute {it} again: {again}."
    return "Restore the day's files from a backup."


@dataclass(frozen=True)
class Audited:
    """What is left of an audit besides its findings.

    Args:
        release: the newest, up to which everything was looked at; -1 without any.
        chains: the chain up to every release that can be read.
    """

    release: int
    chain: ChainHead
    chains: Mapping[int, str]
    tables: Mapping[str, TableAudit]


def audit(lake: Lake, scope: Scope, findings: Findings, progress: OnProgress) -> Audited:
    """Look at a lake; readers and publishers are not disturbed, and what they do meanwhile is not looked at."""
    newest = newest_release(lake)
    chain = ChainAudit(lake, newest, findings)
    tables: dict[str, TableAudit] = {}
    for shown in chain.walk(parse=not scope.fast):
        for name in {*shown.versions, *tables}:
            if scope.has_table(name):
                tables.setdefault(name, TableAudit(lake, name, scope, findings)).follow(shown)
        progress(Progress("following", "releases", shown.number + 1, newest + 1, "release"))
    begun: dict[str, str] = {}
    for name, table in sorted(tables.items()):
        progress(Progress("checking", name))
        begun |= dict.fromkeys(table.look_beyond(), name)
        if table.is_whole and not scope.fast:
            table.look_at_checkpoint()
            look_at_files(table)
        days = [content for day, content in table.recorded.items() if table.scope.has_day(day)]
        rows = sum(content.rows for content in days) if days else None
        progress(Progress("checking", name, len(days), len(days), rows=rows, finished=True))
    if not scope.fast and scope.read_bytes != 0:
        whole = [table for _, table in sorted(tables.items()) if table.is_whole]
        if left := read_contents(whole, scope.read_bytes, datetime.now(UTC).toordinal(), progress):
            findings.notes.append(left)
    for publication in sorted(begun.keys() - _released_after(lake, newest)):
        findings.notes.append(
            f"Publication {publication} has begun to change {begun[publication]} and is not released: if its process "
            "is dead, whoever publishes next finishes it."
        )
    return Audited(newest, chain.head, chain.chains, tables)


def _released_after(lake: Lake, number: int) -> set[str]:
    """Return publications released since the audit began; what is wrong with their releases, it has said."""
    released: set[str] = set()
    with suppress(LakeError):
        released.update(publication for _, publication in published(lake, after=number))
    return released
