"""An open database with the ledger's tables: queries, and exclusive write transactions.

A new ledger is made from `ledger.schema`. An older one is updated by the migrations in this package; only then Alembic
is imported, which takes a second.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Engine, Select, delete, insert, inspect, select

from platform_assets.lakehouse.errors import masked
from platform_assets.ledger import schema
from platform_assets.ledger.connection import (
    BUSY_TIMEOUT_S,
    connect_reader,
    memory_engine,
    open_engine,
    parse_url,
    prepare_folder,
    reading,
    require_intact,
    sqlite_file,
    switch_to_wal,
    writing,
)
from platform_assets.ledger.errors import LedgerVersionError, corrupt, explained, read_only_error
from platform_assets.ledger.schema import versions


class Database:
    """The database with the ledger's tables."""

    def __init__(self, engine: Engine, *, read_only: bool) -> None:
        self.engine = engine
        self.read_only = read_only

    def rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        """Return the rows of one query."""
        try:
            with self.reading() as connection:
                answer = connection.execute(query)
                names = tuple(answer.keys())  # rows are mappings, too, at a quarter more
                return [dict(zip(names, row, strict=True)) for row in answer.all()]
        except ValueError as error:
            raise corrupt(self.engine.url, str(error)) from error

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a transaction for reading."""
        return reading(self.engine)

    def writing(self, waits_s: int = BUSY_TIMEOUT_S) -> AbstractContextManager[Connection]:
        """Return an exclusive write transaction."""
        if self.read_only:
            raise read_only_error(self.engine.url, "it was opened for reading")
        return writing(self.engine, waits_s=waits_s)


def open_database(url: str, *, read_only: bool) -> Database:
    """Open the database and bring its schema up to date; see `Ledger.open`."""
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if not read_only:
        prepare_folder(parsed)
    elif file is not None and not file.exists():
        return _empty()
    require_intact(url)
    engine = open_engine(parsed, writable=not read_only)
    try:
        state = schema_state(engine)
        if not read_only and state != "current":
            upgrade(engine)
        elif state == "old":
            raise LedgerVersionError(
                f"The ledger {masked(parsed)} has an older schema than this code reads.",
                "Run any command that writes, for example `platform-assets admin ledger --rebuild`; it migrates it.",
            )
    except BaseException:
        engine.dispose()
        raise
    if read_only and state == "blank":
        engine.dispose()
        return _empty()
    return Database(engine, read_only=read_only)


def copied_database(url: str) -> Database:
    """Copy the database into memory: the copy can be caught up on a read-only disk, and is discarded.

    A server's database is opened for reading instead; see `Ledger.open_copy`.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if file is None or not file.exists():
        return open_database(url, read_only=True)
    require_intact(url)
    engine = memory_engine()
    try:
        with closing(connect_reader(file)) as source, engine.connect() as copy:
            memory = copy.connection.driver_connection
            assert isinstance(memory, sqlite3.Connection)
            source.backup(memory)
        if schema_state(engine) != "current":
            upgrade(engine)
    except sqlite3.Error as error:
        engine.dispose()
        raise explained(error, parsed) from error
    except BaseException:
        engine.dispose()
        raise
    return Database(engine, read_only=False)


def _empty() -> Database:
    engine = memory_engine()
    schema.metadata.create_all(engine)
    return Database(engine, read_only=True)


MIGRATIONS = Path(__file__).parent / "migrations"
_BEFORE_RELEASE = ("0001", "0002", "0003", "0004", "0005")
"""Revisions from before the first release, from which the first migration goes."""

_alembic = threading.Lock()
"""Alembic hands migrations their connection through module globals: one upgrade at a time in a process."""


def revisions() -> tuple[str, ...]:
    """Return the revisions of this code, oldest first, from file names: `r<revision>_<subject>.py`."""
    names = sorted(file.stem for file in (MIGRATIONS / "versions").glob("r*.py"))
    return tuple(name[1:].partition("_")[0] for name in names)


def schema_state(engine: Engine) -> Literal["blank", "old", "current"]:
    """Return whether there is a ledger in the database, and whether its schema is the newest."""
    with reading(engine) as connection:
        return _state(connection)


def upgrade(engine: Engine) -> None:
    """Create or migrate the ledger in one transaction. A second process finds it done."""
    switch_to_wal(engine.url)
    with _alembic, writing(engine) as connection:
        state = _state(connection)
        has_tables = inspect(connection).has_table(schema.publications.name)  # their revision may be lost
        if state == "old" or (state == "blank" and has_tables):
            _migrate(connection)
        elif state == "blank":
            versions.create(connection, checkfirst=True)
            schema.metadata.create_all(connection)
            connection.execute(insert(versions).values(version_num=revisions()[-1]))


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    connection.execute(delete(versions).where(versions.c.version_num.in_(_BEFORE_RELEASE)))
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _state(connection: Connection) -> Literal["blank", "old", "current"]:
    if not inspect(connection).has_table(versions.name):
        return "blank"
    revision = connection.execute(select(versions.c.version_num)).scalar()
    known = (*_BEFORE_RELEASE, *revisions())
    if revision is not None and revision not in known:
        raise LedgerVersionError(
            f"The ledger {masked(connection.engine.url)} has schema {revision}, which this code does not know; "
            f"its newest is {known[-1]}.",
            "It was written by a newer version: upgrade this installation, or point PLATFORM_LEDGER_URL at another "
            "ledger, which is then filled from the lake.",
        )
    if revision is None:
        return "blank"
    return "current" if revision == known[-1] else "old"
