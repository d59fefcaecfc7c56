"""What can be wrong with a ledger, and passwords kept out of every message."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

from sqlalchemy import URL

from platform_assets.errors import PlatformError

_SECRETS = ("password", "sslpassword", "passfile")
_CORRUPT = ("not a database", "malformed", "file is encrypted", "could not decode to utf-8")
_READ_ONLY = ("readonly database", "read-only transaction")
_BUSY = ("database is locked", "database table is locked")


class LedgerError(PlatformError):
    """The ledger cannot be used as asked."""


class LedgerUnreachableError(LedgerError):
    """There is no database where the URL points, or it does not let us in."""


class LedgerCorruptError(LedgerError):
    """The file is damaged or is something else."""


class LedgerVersionError(LedgerError):
    """The schema is not the one this code knows."""


class LedgerReadOnlyError(LedgerError):
    """Something had to be written where nothing can be."""


def masked(url: URL) -> str:
    """The URL as a person may see it: neither the password before the host nor one among the options."""
    shown = url.update_query_dict({name: "***" for name in _SECRETS if name in url.query})
    return shown.render_as_string(hide_password=True)


def said(error: BaseException, url: URL) -> str:
    """The first line of what a driver said, without any password it may have quoted."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    given = [url.password, *(url.query.get(name) for name in _SECRETS)]
    for secret in (str(part) for part in given if part):
        for spelling in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(spelling, "***")
    return text


def explained(error: BaseException, url: URL) -> LedgerError:
    """What a database error means to a person."""
    text = said(error, url)
    lower = text.lower()
    where = f"The ledger {masked(url)}"
    if any(sign in lower for sign in _CORRUPT):
        return corrupt(url, text)
    if any(sign in lower for sign in _READ_ONLY):
        return read_only_error(url, text)
    if any(sign in lower for sign in _BUSY):
        return LedgerError(
            f"{where} is being written by another process for too long: {text}.",
            "Wait for the other run to end and try again; nothing was changed.",
        )
    if "is full" in lower or "no space" in lower:
        return LedgerError(
            f"{where} could not grow: {text}.",
            "Free some disk space and run again; nothing was changed.",
        )
    if url.get_backend_name() == "sqlite":
        return LedgerUnreachableError(
            f"{where} cannot be used: {text}.",
            "Check that the path is a file one can open.",
        )
    return LedgerUnreachableError(
        f"{where} does not answer or refuses: {text}.",
        "Check that the server runs, that user and database exist, and PLATFORM_LEDGER_URL; nothing was changed.",
    )


def corrupt(url: URL, detail: str) -> LedgerCorruptError:
    """The file is not what was written to it."""
    return LedgerCorruptError(
        f"The ledger {masked(url)} is damaged or is not a ledger: {detail}.",
        "Run `platform-assets ledger rebuild`: it sets the file aside, makes a new index from the lake, and keeps what "
        "can still be read of holds and decisions. If you have a backup, put its ledger.db in this place first.",
    )


def read_only_error(url: URL, detail: str) -> LedgerReadOnlyError:
    """The ledger would have to be written and cannot be."""
    return LedgerReadOnlyError(
        f"The ledger {masked(url)} cannot be written: {detail}.",
        "Give this user the right to write the file and its folder (or the database), or point PLATFORM_LEDGER_URL "
        "elsewhere.",
    )
