"""An open database with the ledger's tables: questions, and transactions that nobody else writes beside."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from typing import Any

from sqlalchemy import Connection, Engine, Select

from platform_assets.lakehouse.database_url import masked
from platform_assets.ledger import schema
from platform_assets.ledger.connection import (
    connect_reader,
    memory_engine,
    open_engine,
    parse_url,
    prepare_folder,
    reading,
    sqlite_file,
    writing,
)
from platform_assets.ledger.damaged import require_intact
from platform_assets.ledger.errors import LedgerVersionError, corrupt, explained, read_only_error
from platform_assets.ledger.migrate import schema_state, upgrade


class Database:
    """Where the ledger's tables are.

    Args:
        engine: with the schema that this code knows.
        read_only: whether writing is refused.
    """

    def __init__(self, engine: Engine, *, read_only: bool) -> None:
        self.engine = engine
        self.read_only = read_only

    def rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        """The answer to one question.

        Raises:
            LedgerCorruptError: a value is none that can have been written there.
        """
        try:
            with self.reading() as connection:
                answer = connection.execute(query)
                names = tuple(answer.keys())  # rows are mappings, too, at a quarter more
                return [dict(zip(names, row, strict=True)) for row in answer.all()]
        except ValueError as error:
            raise corrupt(self.engine.url, str(error)) from error

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction for questions."""
        return reading(self.engine)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction nobody else writes beside.

        Raises:
            LedgerReadOnlyError: the database was opened for reading.
        """
        if self.read_only:
            raise read_only_error(self.engine.url, "it was opened for reading")
        return writing(self.engine)

    def writing_soon(self) -> AbstractContextManager[Connection]:
        """As `writing`, for what may as well not be written: others that write are waited for a second.

        Raises:
            LedgerReadOnlyError: as for `writing`.
        """
        if self.read_only:
            raise read_only_error(self.engine.url, "it was opened for reading")
        return writing(self.engine, waits_s=1)


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
                "Run any command that writes, for example `platform-assets ledger rebuild`; it migrates it.",
            )
    except BaseException:
        engine.dispose()
        raise
    if read_only and state == "blank":
        engine.dispose()
        return _empty()
    return Database(engine, read_only=read_only)


def copied_database(url: str) -> Database:
    """The database as it is, copied into memory: it can be caught up where nothing can be written, and is not kept.

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
