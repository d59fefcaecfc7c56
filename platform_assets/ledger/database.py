"""An open database with the ledger's tables: queries, and exclusive write transactions.

A new ledger is made from `ledger.schema`. An older one is updated by the migrations in this package; only then Alembic
is imported, which takes a second.

A SQLite ledger can be copied while others write, moved to a server with every row, or set aside because it is damaged.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, Select, Table, delete, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import masked
from platform_assets.lakehouse.layout import located
from platform_assets.ledger import schema
from platform_assets.ledger.connection import (
    BUSY_TIMEOUT_S,
    MOVED,
    connect_reader,
    memory_engine,
    moved_to,
    open_engine,
    parse_url,
    prepare_folder,
    reading,
    require_intact,
    sqlite_file,
    switch_to_wal,
    texts_of_any_bytes,
    writing,
)
from platform_assets.ledger.errors import (
    LedgerError,
    LedgerUnreachableError,
    LedgerVersionError,
    corrupt,
    explained,
    read_only_error,
)
from platform_assets.ledger.schema import (
    catch_ups,
    decisions,
    ended_holds,
    holds,
    looks,
    metadata,
    outbox,
    told_heads,
    told_held,
    told_runs,
    versions,
)


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


_TABLES = tuple(table for table in metadata.sorted_tables if table is not looks)
"""All but what the next plan finds anew; the order in which rows may refer to others."""
_AT_ONCE = 5000
"""Rows that are read and written together."""
_WAITS_S = 2.0


_HEADER = b"SQLite format 3\0"
_OF_PEOPLE = (
    decisions,
    holds,
    ended_holds,
    told_held,
    told_runs,
    told_heads,
    outbox,
    catch_ups,
)
"""What the lake cannot give back."""


@dataclass(frozen=True)
class Moved:
    """Result of a move."""

    rows: Mapping[str, int]
    aside: Path


def url_of_file(file: Path) -> str:
    """Return the URL of an existing SQLite ledger."""
    if not file.is_file():
        raise LedgerUnreachableError(
            f"There is no ledger {file} to move.",
            "Name its file. A new ledger needs none: the first command that writes makes it on the server.",
        )
    return f"sqlite:///{file.absolute()}"


def require_server(url: str) -> None:
    """Check that a ledger can be moved to a URL."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        raise LedgerError(
            f"PLATFORM_LEDGER_URL is {masked(parsed)}, and a ledger is moved to PostgreSQL.",
            "Set it to postgresql://user:password@host/database, where the ledger is to be.",
        )


def move_ledger(file: Path, url: str) -> Moved:
    """Copy all of a SQLite ledger into an empty one on a server, compare both, and set the file aside.

    A note in its place refuses processes with the old setting. If it is interrupted, call it again: a server's ledger
    with exactly the file's content is not copied again.

    Raises:
        LedgerError: another process works with the file, the server's ledger has other content, or one of the two
            cannot be used; both are unchanged.
    """
    require_server(url)
    old_url = url_of_file(file)
    source, target = open_database(old_url, read_only=False), open_database(url, read_only=False)
    try:
        with source.engine.connect() as old, _alone(old, file):
            with target.writing() as new:
                rows = {table.name: _copied(old, new, table) for table in _TABLES}
                _require_same(old, new, url)
                failpoint("move.compared")
            aside = _leave_note(file, url)
    finally:
        source.engine.dispose()
        target.engine.dispose()
        if file.is_file() and not moved_to(file):
            switch_to_wal(parse_url(old_url))
    return Moved(rows, aside)


@contextmanager
def _alone(connection: Connection, file: Path) -> Iterator[None]:
    """Begin an exclusive write transaction on a file that no other process has open."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    deadline = time.monotonic() + _WAITS_S
    while True:
        try:
            driver.execute("PRAGMA journal_mode=DELETE")  # it takes the log in, and is refused beside others
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise LedgerError(
                    f"Another process works with the ledger {file}: {error}.",
                    "Stop `up`, schedules, runs and commands, and call this again; nothing was changed.",
                ) from error
        time.sleep(0.05)
    with connection.execution_options(ledger_writes=True).begin():
        yield


def _copied(old: Connection, new: Connection, table: Table) -> int:
    """Copy a table into an empty one; return how many rows it has."""
    rows, is_empty = 0, new.execute(select(table).limit(1)).first() is None
    for some in old.execute(_in_order(table, old)).mappings().partitions(_AT_ONCE):
        rows += len(some)
        if is_empty:
            new.execute(insert(table), [dict(row) for row in some])
    return rows


def _require_same(old: Connection, new: Connection, url: str) -> None:
    for table in _TABLES:
        for number, (one, other) in enumerate(zip_longest(_rows(old, table), _rows(new, table)), start=1):
            if one != other:
                raise LedgerError(
                    f"The ledger {masked(parse_url(url))} is not empty and differs from the one to be moved: row "
                    f"{number:,} of {table.name}.",
                    "Move into a new database; if a command with the new PLATFORM_LEDGER_URL came first, drop and "
                    "create this one again. Nothing was changed.",
                )


def _rows(connection: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    some = connection.execute(_in_order(table, connection)).partitions(_AT_ONCE)
    return (tuple(row) for row in chain.from_iterable(some))


def _in_order(table: Table, connection: Connection) -> Select[Any]:
    """Select all rows of a table, in the same order on both databases, without numbers that a database assigns."""
    given = {column.name for column in table.primary_key if table.autoincrement_column is column}
    by = [
        column.collate("C") if connection.dialect.name == "postgresql" and column.type.python_type is str else column
        for column in table.primary_key
    ]
    return select(*(column for column in table.columns if column.name not in given)).order_by(*by)


def _leave_note(file: Path, url: str) -> Path:
    """Rename the file, and put a note in its place, without a moment in which neither exists.

    The order also holds on disk after a power cut. The file is not opened, because closing it would release SQLite's
    locks.
    """
    now = datetime.now(UTC)
    aside = file.with_name(f"{file.name}.moved-{now:%Y%m%dT%H%M%S%fZ}")
    failpoint("move.copied")
    try:
        os.link(file, aside)
    except OSError:  # a file system without a second name for a file
        file.rename(aside)
    located(file.parent).sync()
    failpoint("move.named")
    located(file).replace(MOVED + f" to {masked(parse_url(url))}, {now:%Y-%m-%d %H:%M} UTC\n".encode())
    failpoint("move.noted")
    return aside


def copy_ledger(url: str, target: Path) -> bool:
    """Copy a SQLite ledger in its present state; an existing copy is replaced once the new one is whole.

    Returns:
        Whether it was copied: a server's database is for the server's own tools.

    Raises:
        LedgerError: the ledger is not there, is damaged, or cannot be read.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if file is None:
        return False
    if not file.exists():
        raise LedgerUnreachableError(
            f"The ledger {masked(parsed)} is not there.",
            "Correct PLATFORM_LEDGER_URL or PLATFORM_STATE; if it is lost, `platform-assets admin ledger "
            "--rebuild` makes one.",
        )
    require_intact(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{token_hex(4)}.tmp")
    try:
        with closing(connect_reader(file)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
        temporary.replace(target)
    except sqlite3.Error as error:
        raise explained(error, parsed) from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


def set_aside(url: str) -> Path:
    """Rename a damaged ledger, so that a new one can take its place. Its content stays.

    Returns:
        Where it is now.

    Raises:
        LedgerCorruptError: the file never was a SQLite database, so it may belong to another program.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    assert file is not None
    with file.open("rb") as content:
        if content.read(len(_HEADER)) != _HEADER:
            raise corrupt(parsed, "it is not a SQLite database")
    aside = file.with_name(f"{file.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    for ending in ("-wal", "-shm", ""):
        beside = file.with_name(f"{file.name}{ending}")
        if beside.exists():
            beside.rename(aside.with_name(f"{aside.name}{ending}"))
    return aside


def salvage(damaged: Path, url: str) -> dict[str, int | None]:
    """Copy decisions and holds into a new ledger, as far as the damaged one can be read.

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
