"""A SQLite ledger whose file is damaged: found on opening, set aside, and what people decided read out of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, Table, insert, select
from sqlalchemy.exc import DBAPIError

from platform_assets.ledger import schema
from platform_assets.ledger.connection import (
    connect_reader,
    moved_error,
    moved_to,
    open_engine,
    parse_url,
    sqlite_file,
    texts_of_any_bytes,
    writing,
)
from platform_assets.ledger.errors import corrupt, explained

_HEADER = b"SQLite format 3\0"
_OF_PEOPLE = (
    schema.decisions,
    schema.holds,
    schema.ended_holds,
    schema.told_held,
    schema.told_runs,
    schema.told_heads,
    schema.outbox,
    schema.catch_ups,
)
"""What the lake cannot give back."""


def require_intact(url: str) -> None:
    """Read the whole file and hold its pages and indexes against each other; 3 ms per MB.

    A flipped bit inside a text of one row can stay unseen: `audit verify` compares every publication with its manifest.

    Raises:
        LedgerMovedError: it was moved to another database.
        LedgerCorruptError: it is damaged.
        LedgerError: it cannot be read.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if file is None or not file.exists() or file.stat().st_size == 0:
        return
    if where := moved_to(file):
        raise moved_error(file, where)
    try:
        with closing(connect_reader(file)) as connection:
            [(said,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except UnicodeDecodeError as error:
        raise corrupt(parsed, "its tables' definitions are no text") from error
    except sqlite3.Error as error:
        raise explained(error, parsed) from error
    if said != "ok":
        raise corrupt(parsed, str(said).strip().splitlines()[-1])


def set_aside(url: str) -> Path:
    """Rename a damaged ledger, so that a new one can take its place; what is in it stays.

    Returns:
        Where it is now.

    Raises:
        LedgerCorruptError: the file never was a SQLite database, so it may be somebody else's.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    assert file is not None
    with file.open("rb") as content:
        if content.read(len(_HEADER)) != _HEADER:
            raise corrupt(parsed, "it is no SQLite database")
    aside = file.with_name(f"{file.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    for ending in ("-wal", "-shm", ""):
        beside = file.with_name(f"{file.name}{ending}")
        if beside.exists():
            beside.rename(aside.with_name(f"{aside.name}{ending}"))
    return aside


def salvage(damaged: Path, url: str) -> dict[str, int | None]:
    """Copy into a new ledger what people decided and what is held, as far as a damaged one can be read.

    Returns:
        For each table how many rows were copied; None where some could not be read.
    """
    source = open_engine(URL.create("sqlite", database=str(damaged)), writable=False)
    target = open_engine(parse_url(url), writable=True)
    copied: dict[str, int | None] = {}
    try:
        for table in _OF_PEOPLE:
            rows, is_whole = _readable(source, table)
            if rows:
                with writing(target) as connection:
                    connection.execute(insert(table).prefix_with("OR IGNORE"), rows)
            copied[table.name] = len(rows) if is_whole else None
    finally:
        source.dispose()
        target.dispose()
    return copied


def _readable(source: Engine, table: Table) -> tuple[list[dict[str, Any]], bool]:
    rows: list[dict[str, Any]] = []
    try:
        with source.connect() as connection, texts_of_any_bytes(connection):
            rows.extend(dict(row) for row in connection.execute(select(table)).mappings())
    except (DBAPIError, ValueError):
        return rows, False
    return rows, True
