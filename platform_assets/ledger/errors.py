"""Errors of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import driver_message, masked

if TYPE_CHECKING:
    from sqlalchemy import URL

_CORRUPT = ("not a database", "malformed", "file is encrypted", "could not decode to utf-8")
_READ_ONLY = ("readonly database", "read-only transaction")
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
_INDEXED_LATER = "What was published stays; where it is not in the ledger yet, the next command writes it there."
"""Said where the lake may have been published to before the ledger failed."""

_BUSY = ("database is locked", "database table is locked")


class LedgerError(PlatformError):
    """The ledger cannot be used like this."""


class LedgerUnreachableError(LedgerError):
    """The URL leads to no database, or the database refuses the connection."""


class LedgerMovedError(LedgerError):
    """The ledger was moved to another database."""


class LedgerCorruptError(LedgerError):
    """The ledger's file is damaged, or not a ledger."""


class LedgerVersionError(LedgerError):
    """The ledger's schema is of another version of the platform."""


class LedgerReadOnlyError(LedgerError):
    """The ledger must be written and is read-only."""


class LedgerFullError(LedgerReadOnlyError):
    """The ledger must be written and its disk is full."""


def is_full(error: BaseException) -> bool:
    """Return whether a database failed because its disk is full; SQLite needs space even to read next to a writer."""
    lower = str(error).lower()
    name = getattr(error, "sqlite_errorname", None)
    return name in _FULL or "is full" in lower or "no space" in lower


def explained(error: BaseException, url: URL) -> LedgerError:
    """Return the meaning of a database error for a person."""
    text = driver_message(error, url)
    lower = text.lower()
    where = f"The ledger {masked(url)}"
    if any(sign in lower for sign in _CORRUPT):
        return corrupt(url, text)
    if any(sign in lower for sign in _READ_ONLY):
        return read_only_error(url, text)
    if any(sign in lower for sign in _BUSY):
        return LedgerError(
            f"{where} is being written by another process for too long: {text}.",
            f"Wait for the other run to end and run the same command again. {_INDEXED_LATER}",
        )
    if is_full(error):
        return LedgerFullError(
            f"{where} cannot grow, there is no room left on its disk: {text}.",
            f"Free some disk space and run the same command again. {_INDEXED_LATER}",
        )
    if url.get_backend_name() == "sqlite":
        return LedgerUnreachableError(
            f"{where} cannot be used: {text}.",
            "Check that the path is a file one can open.",
        )
    is_moved = any("@" in (part or "") for part in (url.host, url.database))
    hint = "Write @ in user and password as %40 (and / as %2F): where it stands as it is, the host begins. "
    return LedgerUnreachableError(
        f"{where} does not answer or refuses: {text}.",
        f"{hint if is_moved else ''}Check that the server runs, that user and database exist, and PLATFORM_LEDGER_URL, "
        f"and run the same command again. {_INDEXED_LATER}",
    )


def corrupt(url: URL, detail: str) -> LedgerCorruptError:
    """Return the error for a damaged ledger file."""
    return LedgerCorruptError(
        f"The ledger {masked(url)} is damaged or is not a ledger: {detail}.",
        "Run `platform-assets admin ledger --rebuild`: it sets the file aside, makes a new index from the lake, "
        "and keeps what "
        "can still be read of holds and decisions. If you have a backup, put its ledger.db in this place first.",
    )


def read_only_error(url: URL, detail: str) -> LedgerReadOnlyError:
    """Return the error for a ledger that must be written and cannot be."""
    return LedgerReadOnlyError(
        f"The ledger {masked(url)} cannot be written: {detail}.",
        "Give this user the right to write the file and its folder (or the database), or point PLATFORM_LEDGER_URL "
        "elsewhere.",
    )
