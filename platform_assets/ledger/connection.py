"""Open a database that behaves the same, whether SQLite or PostgreSQL.

One writer at a time on both: SQLite by `BEGIN IMMEDIATE`, PostgreSQL by an advisory lock held until the transaction
ends. Writers are rare and take milliseconds, so nothing is gained by letting them contend for single rows.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic_core import from_json
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.pool import StaticPool

from platform_assets.lakehouse.errors import masked
from platform_assets.ledger.errors import (
    LedgerError,
    LedgerMovedError,
    LedgerUnreachableError,
    corrupt,
    explained,
    is_full,
    read_only_error,
)

BUSY_TIMEOUT_S = 30
_CONNECT_TIMEOUT_S = 5
_INSUFFICIENT_PRIVILEGE = "42501"
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
_WRITERS = int.from_bytes(b"ledger", "big")
"""Key of the advisory lock; the lake's publish lock has another."""


def parse_url(url: str) -> URL:
    """Return the URL with our driver, and a path as on disk: SQLAlchemy decodes everything but that."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name().lower()
    except (ArgumentError, ValueError):
        # Not chained: what cannot be parsed may hold a password anywhere.
        raise LedgerError(
            "The ledger's URL cannot be understood (it is not shown, because it may hold a password).",
            "Write PLATFORM_LEDGER_URL as postgresql://user:password@host:5432/database or sqlite:////path/ledger.db; "
            "special characters in the password, and ? and % in the path, are percent-encoded.",
        ) from None
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return parsed.set(drivername="sqlite", database=parsed.database and unquote(parsed.database))
    raise LedgerError(
        f"The ledger {masked(parsed)} is neither SQLite nor PostgreSQL.",
        "Give PLATFORM_LEDGER_URL a sqlite:/// or postgresql:// URL.",
    )


def sqlite_file(url: URL) -> Path | None:
    """Return the file behind the URL; none for a server and for a database in memory."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database)).absolute()


def _engine(url: URL | str, **options: Any) -> Engine:
    """Make SQLAlchemy's engine with a JSON parser three times as fast: every day has two JSON values."""
    return create_engine(url, json_deserializer=from_json, **options)


def memory_engine() -> Engine:
    """Return a private SQLite database in memory."""
    engine = _engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    _behave(engine, writable=True)
    return engine


def open_engine(url: URL, *, writable: bool) -> Engine:
    """Connect lazily to the database, as a writer or strictly as a reader."""
    if url.get_backend_name() == "sqlite":
        file = sqlite_file(url)
        if file is None:
            return memory_engine()
        engine = _engine(url) if writable else _engine(url, creator=partial(connect_reader, file))
        _behave(engine, writable=writable)
        return engine
    try:
        engine = _engine(
            url,
            connect_args={} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_TIMEOUT_S},
            # After waiting for another writer, its rows must be visible, even if the server's default is another level.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # a run that computes for an hour finds its idle connection cut by then
            execution_options={} if writable else {"postgresql_readonly": True},
        )
    except ModuleNotFoundError as error:
        raise LedgerError(
            f"The ledger {masked(url)} needs the PostgreSQL driver, which is not installed.",
            "Install it with `pip install 'platform-assets[postgres]'`.",
        ) from error
    # Before SQLAlchemy's own first queries: one of them fails there.
    event.listen(engine, "connect", partial(_require_any_text, url), insert=True)
    return engine


def _require_any_text(url: URL, connection: Any, _: object) -> None:
    """Refuse a server's database that cannot store every name and reason; the first one would fail a publication."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise LedgerError(
            f"The ledger {masked(url)} is in a database with the encoding {encoding}; UTF8 is required.",
            "Make the database with the encoding UTF8 (createdb --encoding=UTF8 --template=template0).",
        )


def prepare_folder(url: URL) -> None:
    """Make the folder of a SQLite ledger and check that it can be written, before anything is computed.

    Raises:
        LedgerReadOnlyError: it cannot be written.
        LedgerUnreachableError: the path cannot be a file.
    """
    file = sqlite_file(url)
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _FORBIDDEN:
            raise read_only_error(url, f"the folder {file.parent} cannot be created ({error.strerror})") from error
        raise LedgerUnreachableError(
            f"The folder {file.parent} of the ledger cannot be created: {error.strerror}.",
            "Point PLATFORM_STATE or PLATFORM_LEDGER_URL at a place for a folder.",
        ) from error
    for path in (file, file.parent):
        if path.exists() and not _is_writable(path):
            raise read_only_error(url, f"no right to write {path}")
    if not file.exists():
        with suppress(OSError):  # SQLite will fail for the same reason, with a message
            file.touch()  # SQLite would make a file without group write access, even if the umask allows it


def switch_to_wal(url: URL) -> None:
    """Put a SQLite file in WAL mode, permanently, so that readers never wait for a writer.

    The switch needs the file for itself and does not honour `busy_timeout`, so first openings at the same moment wait
    for each other here.
    """
    file = sqlite_file(url)
    if file is None:
        return
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.Error as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise explained(error, url) from error
            time.sleep(0.02)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction for reading."""
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        raise _translated(error, engine.url) from None


@contextmanager
def texts_of_any_bytes(connection: Connection) -> Iterator[None]:
    """Read bytes that are not UTF-8 as other text in this block: SQLite stores any, and reads no row after them."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):  # a server takes none
        yield
        return
    before, driver.text_factory = driver.text_factory, lambda content: content.decode("utf-8", "backslashreplace")
    try:
        yield
    finally:
        driver.text_factory = before


@contextmanager
def writing(engine: Engine, *, waits_s: int = BUSY_TIMEOUT_S) -> Iterator[Connection]:
    """Begin an exclusive write transaction: all of it happens or nothing."""
    try:
        with (
            engine.connect().execution_options(ledger_writes=True, ledger_waits_s=waits_s) as connection,
            connection.begin(),
        ):
            if engine.dialect.name == "postgresql":
                if waits_s != BUSY_TIMEOUT_S:
                    connection.execute(text(f"SET LOCAL lock_timeout = '{waits_s}s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITERS})
            yield connection
    except DBAPIError as error:
        raise _translated(error, engine.url) from None


def _translated(error: DBAPIError, url: URL) -> Exception:
    """Return an error for a person, unless it can only be our mistake: a broken constraint, a wrong statement."""
    file = sqlite_file(url)
    if file is not None and (where := moved_to(file)):  # while it was open here
        return moved_error(file, where)
    ours = isinstance(error, IntegrityError | DataError | ProgrammingError)
    forbidden = getattr(error.orig, "sqlstate", None) == _INSUFFICIENT_PRIVILEGE
    return error if ours and not forbidden else explained(error.orig or error, url)


def _behave(engine: Engine, *, writable: bool) -> None:
    """Set the options of every SQLite connection."""

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves; the driver would only do so before an INSERT
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")
        connection.execute("PRAGMA foreign_keys=ON")
        # NORMAL may lose the last commits at a power cut. The index would come back from the lake, a hold or an
        # approval would not; a commit synced to disk costs a few milliseconds, a few times per run.
        connection.execute("PRAGMA synchronous=FULL")
        if not writable:
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if not options.get("ledger_writes", False):
            connection.exec_driver_sql("BEGIN")
            return
        waits_s = options.get("ledger_waits_s", BUSY_TIMEOUT_S)
        try:
            if waits_s != BUSY_TIMEOUT_S:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={waits_s * 1000}")
            # IMMEDIATE waits for the other writer here; a plain BEGIN would fail at its first INSERT instead.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        finally:
            if waits_s != BUSY_TIMEOUT_S:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")


def connect_reader(file: Path) -> sqlite3.Connection:
    """Return a read-only connection, also on a read-only disk."""
    # A reader must be able to open a copy on a read-only disk. Without a WAL beside it, SQLite needs `immutable`, or it
    # tries to create its shared memory file.
    if not _has_wal(file) and not _is_writable(file.parent):
        return _connect(file, "mode=ro&immutable=1")
    connection = _connect(file, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")
    except sqlite3.Error as error:
        if is_full(error) and not _has_wal(file):
            connection.close()
            return _connect(file, "mode=ro&immutable=1")
        # The first query reports any other error.
    return connection


def _connect(file: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{options}", uri=True, check_same_thread=False)


def _has_wal(file: Path) -> bool:
    """Return whether the database has a WAL file with content; a full disk may leave an empty one."""
    wal = file.with_name(f"{file.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


MOVED = b"ledger of platform-assets, moved"
"""How it begins."""


def moved_to(file: Path) -> str:
    """Return where and when a ledger was moved, from the note that replaced it; empty without such a note."""
    try:
        with file.open("rb") as content:
            begins = content.read(1024)
    except OSError:  # SQLite will fail for the same reason, with a message
        return ""
    return begins.removeprefix(MOVED).decode("utf-8", "backslashreplace").strip() if begins.startswith(MOVED) else ""


def moved_error(file: Path, where: str) -> LedgerMovedError:
    """Return the error for a setting that names a moved ledger."""
    return LedgerMovedError(
        f"The ledger {file} was moved {where}.", "Set PLATFORM_LEDGER_URL to that database, here as well."
    )


def require_intact(url: str) -> None:
    """Read the whole file and compare its pages and indexes; 3 ms per MB.

    A flipped bit inside a text of one row can stay unseen: `admin audit` compares every publication with its manifest.

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
