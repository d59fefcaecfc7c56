"""Locks held by a session of PostgreSQL, for a lake whose ledger is there; imported only for such a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from platform_assets.lakehouse.database_url import driver_message, masked
from platform_assets.lakehouse.errors import LakeError, LockLostError, LockTimeoutError

_CONNECT_TIMEOUT_S = 10
_TIMED_OUT = "55P03"
"""PostgreSQL's code for lock_not_available, which `lock_timeout` ends in."""
_HELD = """
SELECT EXISTS (
  SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid() AND objsubid = 1
  AND (classid::bigint << 32 | objid::bigint) = :key
)"""
"""Whether this session holds an advisory lock, as pg_locks shows a key of 64 bits."""
_ENDS_BY_ITSELF = """
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'idle_session_timeout')"""
"""A lock is waited for and held for as long as its holder works, whatever time the server gives others; older
servers know only the first."""


@contextmanager
def session_lock(
    url: str, meant: str, shown: str, timeout_s: float, timed_out: Callable[[], LockTimeoutError]
) -> Iterator[Callable[[], None]]:
    """Hold an advisory lock for as long as the block runs and the session lives.

    Args:
        meant: what is locked, the same text for everybody who means the same.

    Yields:
        What raises if the lock was lost meanwhile.

    Raises:
        LockTimeoutError: somebody else held it for too long.
        LakeError: the database cannot be reached.
    """
    key = int.from_bytes(sha256(meant.encode()).digest()[:8], "big", signed=True)
    with _session(url) as session:
        try:
            session.execute(text(_ENDS_BY_ITSELF))
            session.execute(text(f"SET lock_timeout = {max(int(timeout_s * 1000), 1)}"))
            session.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _TIMED_OUT:
                raise timed_out() from error
            parsed = session.engine.url
            raise LakeError(
                f"The database {masked(parsed)} ended the session that waited for the lock {shown}: "
                f"{driver_message(error.orig or error, parsed)}.",
                "Run the same again when the server answers; nothing was published.",
            ) from None

        def still_held() -> None:
            lost = LockLostError(
                f"The database session that held the lock {shown} was lost.",
                "Publish again: whoever takes the lock next finishes what was begun. A pooler between here and "
                "PostgreSQL has to keep sessions apart.",
            )
            try:
                held = session.execute(text(_HELD), {"key": key}).scalar()
            except DBAPIError as error:
                raise lost from error
            if not held:
                raise lost

        yield still_held
        # The lock ends with the session, which is closed here and by a dead process alike.


@contextmanager
def _session(url: str) -> Iterator[Connection]:
    try:
        parsed = make_url(url).set(drivername="postgresql+psycopg")
    except ArgumentError:
        raise LakeError(
            "The URL of the lock's database cannot be understood.",
            "Write PLATFORM_LEDGER_URL as postgresql://user:password@host:5432/database.",
        ) from None
    engine = create_engine(
        parsed,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S},
    )
    try:
        session = engine.connect()
    except DBAPIError as error:
        # Not chained: drivers quote what they were given.
        reason = driver_message(error.orig or error, parsed)
        raise LakeError(
            f"The database {masked(parsed)} that holds the locks cannot be reached: {reason}.",
            "Start it, or correct PLATFORM_LEDGER_URL.",
        ) from None
    with session:
        yield session
