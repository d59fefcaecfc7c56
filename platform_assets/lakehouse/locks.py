"""Locks that end with their holder: held by the operating system or a database session, never by time.

One publish lock per lake, from the first table commit to the release commit, and one ingest lock per raw table. Private
and staged folders have one too, so that folders of a dead holder can be recognized.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING

from platform_assets.lakehouse.errors import LakeError, LockLostError, LockTimeoutError, driver_message, masked
from platform_assets.lakehouse.layout import Lake, checked_publication, drop_drafts
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.lakehouse.storage.location import Location

if TYPE_CHECKING:
    from sqlalchemy import Connection

PUBLISH_TIMEOUT_S = 60.0
INGEST_TIMEOUT_S = 1800.0
PRIVATE_TIMEOUT_S = 5.0
BEGIN_TIMEOUT_S = 300.0
"""A plan is explained under it, which takes long for years of days."""

_CONNECT_TIMEOUT_S = 10
"""To the database whose sessions hold the locks of a lake."""
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
"""Lift the server's time limits: a lock is held for as long as its holder works. Older servers know only the first."""

BATCHES = "batches.json"
"""The ending of the file that names what a stage consists of."""

StillHeld = Callable[[], None]
"""Raises if the lock has been lost."""


@contextmanager
def publish_lock(lake: Lake, timeout_s: float = PUBLISH_TIMEOUT_S) -> Iterator[StillHeld]:
    """Hold the publish lock of a lake. An earlier holder that lost the lock can change nothing any more."""
    with _lock(lake, "publish", timeout_s) as still_held:
        drop_drafts(lake)
        yield still_held


Lock = AbstractContextManager[StillHeld]
"""It may be held for as long as Spark jobs run, and taking it raises what `publish_lock` does."""


def ingest_lock(lake: Lake, table: str, timeout_s: float = INGEST_TIMEOUT_S) -> Lock:
    """Hold the ingest lock of a raw table."""
    lake.table_path(table)
    return _lock(lake, f"ingest-{table}", timeout_s)


def private_lock(lake: Lake) -> Lock:
    """Hold the lock for private computations."""
    return _lock(lake, "private", PRIVATE_TIMEOUT_S)


def open_stage_lock(lake: Lake, name: str) -> Lock:
    """Hold the lock of a named stage."""
    return _lock(lake, f"open-stage-{name}", PRIVATE_TIMEOUT_S)


def plan_lock(lake: Lake, name: str) -> Lock:
    """Hold the lock of a plan."""
    return _lock(lake, f"plan-{name}", PRIVATE_TIMEOUT_S)


def begin_lock(lake: Lake) -> Lock:
    """Hold the lock for beginning plans, from checking other plans until they can see this one."""
    return _lock(lake, "begin", BEGIN_TIMEOUT_S)


def plan_holder(lake: Lake, name: str) -> str:
    """Return who applies a plan at this moment, in words; empty if no process does."""
    return _held_by(lake, f"plan-{name}")


def publish_holder(lake: Lake) -> str:
    """Return who publishes at this moment, in words; empty if no process does."""
    return _held_by(lake, "publish")


@contextmanager
def stage_lock(lake: Lake, publication: str) -> Iterator[None]:
    """Hold the lock of a publication's staged folders, so that no other process removes them as abandoned."""
    with _lock(lake, _stage(publication), PRIVATE_TIMEOUT_S):
        try:
            yield
        finally:
            forget_stage(lake, publication)


def is_staging(lake: Lake, publication: str) -> bool:
    """Return whether a live process is working on the stages of a publication."""
    if not lake.lock_url and not stage_file(lake, publication, "lock").exists():
        return False
    try:
        with _lock(lake, _stage(publication), 0):
            forget_stage(lake, publication)
            return False
    except LakeError:  # held, or unknown on a read-only lake
        return True


def forget_stage(lake: Lake, publication: str) -> None:
    """Remove the lock files of a publication's staged folders. No process takes this lock a second time."""
    for ending in (BATCHES, "lock", "holder.json"):
        stage_file(lake, publication, ending).remove(durable=False)


def stage_file(lake: Lake, publication: str, ending: str) -> Location:
    """Return a file next to the lock of a publication's stages."""
    return lake.locks_path / f"{_stage(publication)}.{ending}"


def _stage(publication: str) -> str:
    return f"stage-{checked_publication(publication)}"


def _held_by(lake: Lake, name: str) -> str:
    """Return the holder by taking the lock for a moment: every other sign of it outlives its holder."""
    holder = lake.locks_path / f"{name}.holder.json"
    if not holder.exists():
        return ""
    try:
        with _session_or_file(lake, name, 0):
            return ""
    except LockTimeoutError:
        return _holder(holder)


@contextmanager
def _lock(lake: Lake, name: str, timeout_s: float) -> Iterator[StillHeld]:
    holder = lake.locks_path / f"{name}.holder.json"
    # The lock itself says that it is held. If its file was deleted, only this second file tells the old holder that
    # another process has taken the lock since.
    turn = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "turn": token_hex(8)})
    with ExitStack() as held:
        try:
            holder.parent.make()
            holder.ensure_writable()  # before a wait that would end in the wrong advice
            session_holds = held.enter_context(_session_or_file(lake, name, timeout_s))
            holder.write_in_place([turn.encode()])  # also on a full disk, or nothing could be removed from it
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            raise LakeError(
                f"The lake {lake.root} cannot be written: {error.strerror} ({error.filename}); what was published "
                "stays.",
                "Give this user the right to write there, mount it so that it can be written, or name another folder "
                "in PLATFORM_LAKE.",
            ) from error
        yield session_holds or partial(_require_turn, holder, turn)


def _require_turn(holder: Location, turn: str) -> None:
    """Raise unless this process was the last to take the lock."""
    if holder.read() != turn.encode():
        raise LockLostError(
            f"The lock of {holder} was lost: another process took it, or removed its file, while it was held.",
            "Run the same command again: the next holder finishes what was begun. The file system of the lake must "
            "keep locks (`flock`) until they are released, and the lock files must not be deleted.",
        )


@contextmanager
def _file(lake: Lake, name: str, timeout_s: float) -> Iterator[None]:
    from filelock import FileLock, Timeout  # which takes as long to import as a command may need that only reads

    if not isinstance(lake.locks_path, Disk):
        raise LakeError(
            f"A lake in {lake.root} keeps no locks.",
            "Open it with the `lock_folder` or the `lock_url` of all who write.",
        )
    # Without flock there would be a lock held by a file's existence, which outlives a dead holder.
    lock = FileLock(
        str(lake.locks_path / f"{name}.lock"),
        timeout=timeout_s,
        poll_interval=0.01,
        fallback_to_soft=False,
    )
    try:
        lock.acquire()
    except Timeout as error:
        raise _timed_out(lake, name, timeout_s) from error
    try:
        yield
    finally:
        lock.release()


def _session_or_file(lake: Lake, name: str, timeout_s: float) -> AbstractContextManager[StillHeld | None]:
    """Hold a lock by a session of the lake's database, which can confirm it, or else by a file."""
    return _session_lock(lake, name, timeout_s, lake.lock_url) if lake.lock_url else _file(lake, name, timeout_s)


@contextmanager
def _session_lock(lake: Lake, name: str, timeout_s: float, url: str) -> Iterator[StillHeld]:
    """Hold an advisory lock of PostgreSQL for as long as the block runs and the session lives."""
    from sqlalchemy import text  # a lake with locks on disk needs no SQL
    from sqlalchemy.exc import DBAPIError

    shown = f"{name!r} of {lake.root}"
    key = int.from_bytes(sha256(f"{_lake_id(lake)} {name}".encode()).digest()[:8], "big", signed=True)
    with _session(url) as session:
        try:
            session.execute(text(_ENDS_BY_ITSELF))
            session.execute(text(f"SET lock_timeout = {max(int(timeout_s * 1000), 1)}"))
            session.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _TIMED_OUT:
                raise _timed_out(lake, name, timeout_s) from error
            parsed = session.engine.url
            raise LakeError(
                f"The database {masked(parsed)} ended the session that waited for the lock {shown}: "
                f"{driver_message(error.orig or error, parsed)}.",
                "Run the same again when the server answers; nothing was published.",
            ) from None

        def still_held() -> None:
            lost = LockLostError(
                f"The database session that held the lock {shown} was lost.",
                "Publish again: the next holder finishes what was begun. A pooler between here and PostgreSQL must "
                "keep sessions apart.",
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
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    parsed = make_url(url).set(drivername="postgresql+psycopg")
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


def _lake_id(lake: Lake) -> str:
    """Return the name stored in the lake, on which machines agree that have mounted it at different places."""
    file = lake.locks_path / "lake_id"
    content = file.read()
    if content is None and not file.write_new(content := token_hex(16).encode()):
        content = file.read()
    return (content or b"").decode()


def _timed_out(lake: Lake, name: str, timeout_s: float) -> LockTimeoutError:
    who = _holder(lake.locks_path / f"{name}.holder.json")
    return LockTimeoutError(
        f"The lock {name!r} of {lake.root} was not free within {timeout_s:g} s; it was last taken by {who}.",
        "Wait for that process or end it: the lock goes with it.",
    )


def _holder(file: Location) -> str:
    try:
        who = json.loads(file.read() or b"")
        return f"process {who['pid']} on {who['host']}"
    except (ValueError, KeyError, TypeError):
        return "a process that left no name"
