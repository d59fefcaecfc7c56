"""Views of reference data: digests of the values valid on each day, used in fingerprints.

A row counts until the next row of its key replaces it, so correcting a row that was replaced before a day does not
change the day. Computed by DuckDB from released files, without a JVM, once for each content of the table, for the
calendar's days.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import accumulate
from operator import add

from platform_assets.contracts import DAY, AsOf, Catalogue, Contract
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.delta.schema import types_in
from platform_assets.lakehouse.horizon import require_whole
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.planning.fingerprints import View
from platform_assets.records.history import DayMark


def contents_read(contracts: Iterable[Contract], snapshot: LakeSnapshot) -> dict[str, str]:
    """Return the content of all tables that some contracts read as of a day; see `content_of`."""
    names = {read.table for contract in contracts for read in contract.inputs if isinstance(read.window, AsOf)}
    return {table: _content_since(table, snapshot) or _content(table, snapshot) for table in sorted(names)}


def _content_since(table: str, snapshot: LakeSnapshot) -> str | None:
    """Return the content at the last look, if the table was not published since."""
    since = snapshot.since
    if since is None or table in since.published or snapshot.platform.catalogue[table].source:
        return None
    if since.new_days and snapshot.days(table, since.new_days):
        return None  # rows that waited there count now
    return since.look.contents.get(table)


def _content(table: str, snapshot: LakeSnapshot) -> str:
    key, order = history_key(snapshot.platform.catalogue, table), history_order(snapshot.platform.catalogue, table)
    return content_of({day: mark.digest for day, mark in _marks(table, snapshot).items()}, key, order)


def _marks(table: str, snapshot: LakeSnapshot) -> dict[date, DayMark]:
    return {day: mark for day, mark in snapshot.marks([table])[table].items() if day in snapshot.calendar}


def view_of(table: str, snapshot: LakeSnapshot, content: str | None = None) -> View:
    """Return the view of one effective-dated table; empty for a table without content.

    Args:
        content: content of its days, if known.

    Raises:
        BeyondWindowError: its content was never cached, and its files may be deleted.
    """
    looks = snapshot.platform.ledger.looks
    content = content or _content(table, snapshot)
    known = looks.view(table, content)
    if known is not None:
        return known
    key, order = history_key(snapshot.platform.catalogue, table), history_order(snapshot.platform.catalogue, table)
    if not snapshot.has(table):
        return {}
    columns = types_in(snapshot.schema_string(table)).keys() - {DAY}  # perhaps not those of the contract yet
    if not set(key) <= columns:
        return {}  # of no use until the table follows its contract: what reads it waits for that
    filled = {day for day, mark in _marks(table, snapshot).items() if mark.rows}
    view = _computed(table, snapshot, filled, sorted(columns), key, order) if filled else {}
    looks.keep_view(table, content, view)
    return view


def content_of(digests: Mapping[date, str], key: Sequence[str], order: Sequence[str]) -> str:
    """Hash the content of a table's days and the order of its rows, which alone determine a view."""
    days = "".join(f"{day}={digest}," for day, digest in digests.items())
    return hashlib.sha256(f"{days}|{','.join(key)}|{','.join(order)}".encode()).hexdigest()[:32]


def history_key(catalogue: Catalogue, table: str) -> tuple[str, ...]:
    """Return the columns that identify what has attributes: the natural key without the effective date."""
    return tuple(name for name in catalogue[table].key if name != _effective(catalogue, table))


def history_order(catalogue: Catalogue, table: str) -> tuple[str, ...]:
    """Return the columns that order the rows of a key, within a day by the time of effect."""
    effective = _effective(catalogue, table)
    return (DAY, effective) if effective and effective in catalogue[table].key else (DAY,)


def _effective(catalogue: Catalogue, table: str) -> str | None:
    return catalogue[catalogue[table].inputs[0].table].event_time


def _computed(
    table: str,
    snapshot: LakeSnapshot,
    days: Collection[date],
    columns: Sequence[str],
    key: Sequence[str],
    order: Sequence[str],
) -> View:
    """Sum the hashes of all valid rows: a row adds its hash on its day and subtracts the one before.

    MD5 of the values as text is, unlike DuckDB's own hash, the same in every version of DuckDB.
    """
    import duckdb  # which planning mostly does without

    require_whole(snapshot.platform.lake, snapshot.number)
    files = {day: day_files for day, day_files in snapshot.files(table).items() if day in days}
    rows = rows_of_files(snapshot.platform.lake.table_path(table), files)
    texts = (f'"{name}"::VARCHAR' if name in rows.schema.names else "NULL" for name in columns)
    # Names and lengths, so that two rows have the same text only if they are equal, for any order of columns. Nothing
    # for a null, so that a new column does not change older rows.
    values = " || ".join(
        f"coalesce('{name}=' || length({text}) || ':' || {text}, '')" for name, text in zip(columns, texts, strict=True)
    )
    by_key, in_order, both = (", ".join(f'"{name}"' for name in names) for names in (key, order, (*order, *key)))
    before = f"OVER ({f'PARTITION BY {by_key} ' if key else ''}ORDER BY {in_order})"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        texts_of = database.from_arrow(rows).project(f"{both}, {values} AS text")
        hashed = texts_of.project(
            f"{both}, md5_number_lower(text)::HUGEINT AS low, md5_number_upper(text)::HUGEINT AS high"
        )
        changes = hashed.project(
            f"{DAY}, if(lag(low) {before} IS NULL, 1, 0) AS things, "
            f"low - coalesce(lag(low) {before}, 0) AS low, high - coalesce(lag(high) {before}, 0) AS high"
        )
        by_day = changes.aggregate(f"{DAY}, sum(things) AS things, sum(low) AS low, sum(high) AS high", DAY)
        changed_days = by_day.filter("things <> 0 OR low <> 0 OR high <> 0").order(DAY).fetchall()
    totals = accumulate((tuple(map(int, parts)) for _, *parts in changed_days), lambda *pair: tuple(map(add, *pair)))
    return {day: ":".join(f"{part:x}" for part in total) for (day, *_), total in zip(changed_days, totals, strict=True)}
