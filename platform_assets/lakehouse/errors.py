"""Errors of a lake, its tables, files and locks; and names of databases in messages, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from platform_assets.errors import PlatformError

if TYPE_CHECKING:
    from sqlalchemy import URL


class LakeError(PlatformError):
    """The lake is damaged, or cannot do this."""


class UnusableNameError(LakeError):
    """An object of a store has a name that breaks the listing of its whole folder."""


class NeverPublishedError(LakeError):
    """A table has no content at the requested release."""


class UnknownReleaseError(LakeError):
    """No release has this number."""


class MovedLakeError(LakeError):
    """The lake has none of the releases that the ledger knows: it is a different lake, or was moved."""

    def __init__(self, root: str, known: Mapping[str, int], *, is_empty: bool) -> None:
        newest, number = max(known.items(), key=lambda release: release[1])
        has = "no release" if is_empty else "none of these releases but others"
        super().__init__(
            f"The ledger knows {len(known):,} releases up to {number} (publication {newest}), and the lake {root} has "
            f"{has}; nothing was changed.",
            "If the lake lies elsewhere now, name its folder in PLATFORM_LAKE; if it was deleted, restore it from a "
            "backup. To begin anew with this folder, run `platform-assets admin ledger --rebuild`: the ledger then "
            "forgets "
            "those releases and lifts holds that are of another lake; decisions stay.",
        )


class BeyondWindowError(LakeError):
    """The request is older than the rollback window, and its files may be deleted."""


class ErasedError(BeyondWindowError):
    """The request is older than an erasure, which deleted its files."""


class StillNeededError(LakeError):
    """Files that were to be deleted are needed; nothing was deleted."""


class ManifestError(LakeError):
    """A manifest is missing, cannot be read, or contradicts itself or the publication's other manifest."""


class SchemaMismatchError(LakeError):
    """Files have other columns than their table."""


class StagedFileError(LakeError):
    """A staged file is missing, has another size, or is in the folder of another day."""


class NullDayError(LakeError):
    """Rows have no event date, so they belong to no day."""


class DamagedTableError(LakeError):
    """A table's log is missing, torn, behind its release, or uses Delta features this platform does not write."""


class OtherHistoryError(LakeError):
    """Ledger and lake no longer have the same history: one was restored older than the other."""


class UnknownStageError(LakeError):
    """No open stage has this name."""


class DamagedStageError(LakeError):
    """The record of an open stage cannot be read, or its files are gone."""


class StageError(LakeError):
    """An open stage cannot do what was asked; it was not changed."""


class LockTimeoutError(LakeError):
    """Another process held a lock for too long."""


class LockLostError(LakeError):
    """A lock ended while its holder still worked. The work of other processes since then stays."""


def lock_lost_to(table: str, version: int, publication: str) -> LockLostError:
    """Return the error for a lost lock, naming the publication that came in between."""
    return LockLostError(
        f"Publication {publication} made version {version} of {table} while this process held the lock, or took "
        "itself to hold it.",
        "Nothing of theirs was replaced. Run the same command again; if it happens again, find out what ends the "
        "lock: a file system without flock, or a database that closes sessions.",
    )


class InterruptedPublicationError(LakeError):
    """A publication failed after its first commit; the next publisher finishes it from its manifest.

    Its staged files are referred to already and must stay.
    """


class ForeignCommitError(LakeError):
    """Another tool changed a table."""

    def __init__(self, table: str, version: int, made_by: str) -> None:
        super().__init__(
            f"Version {version} of {table} was not made by a publication but by {made_by}.",
            f"Nothing is published{'' if table == '_releases' else ' to it'} while it stands, and readers at a release "
            "do not see it. Keep its rows elsewhere if they are wanted, then put the table back with "
            f"`platform-assets undo foreign:{table} --reason …`.",
        )
        self.table = table
        self.version = version


class OvertakenError(LakeError):
    """Another release became current after days were read that must be published together; nothing was published."""

    def __init__(self, release: int, now: int) -> None:
        super().__init__(
            f"Release {now} was published while days over release {release} were computed.",
            "Compute again what reads other days now, over the newest release, and publish again.",
        )
        self.release = release
        self.now = now


class Conflict(LakeError):  # noqa: N818 - the design's word for an outcome that callers plan for
    """Another publication replaced days after they had been read; nothing was published."""

    def __init__(self, tables: dict[str, tuple[date, ...]]) -> None:
        named = "; ".join(
            f"{table}: {', '.join(map(str, days[:5]))}{f' and {len(days) - 5} more' if len(days) > 5 else ''}"
            for table, days in tables.items()
        )
        super().__init__(
            f"Another publication replaced days after they were read: {named}.",
            "Compute these days again from the current release; the others can be published as they are.",
        )
        self.tables = tables

    @property
    def days(self) -> tuple[date, ...]:
        """Return the days of all tables, oldest first."""
        return tuple(sorted({day for days in self.tables.values() for day in days}))


_SHOWN = {
    "application_name", "cache", "channel_binding", "connect_timeout", "gssencmode", "host", "hostaddr", "keepalives",
    "load_balance_hosts", "mode", "port", "sslmode", "sslrootcert", "target_session_attrs", "timeout", "uri",
}  # fmt: skip
"""Options that hold no secret. All others are masked: an option of a driver to come may hold one."""
_HIDDEN = "***"


def masked(url: URL) -> str:
    """Return the URL without passwords: before the host, in the options, or moved by an unescaped character."""
    shown = url.update_query_dict(dict.fromkeys(_secret_options(url), _HIDDEN))
    if "@" in (url.host or ""):
        shown = shown.set(host=_HIDDEN)
    if url.get_backend_name() != "sqlite" and "@" in (url.database or ""):
        shown = shown.set(database=_HIDDEN)
    return shown.render_as_string(hide_password=True)


def driver_message(error: BaseException, url: URL) -> str:
    """Return the first line of a driver's message, without any secret of the URL."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    moved = [part for part in (url.host, url.database) if part and "@" in part]
    for secret in filter(None, (url.password, *_secret_options(url).values(), *moved)):
        for spelling in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(spelling, _HIDDEN)
    return text


def _secret_options(url: URL) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else ",".join(value)
        for name, value in url.query.items()
        if name not in _SHOWN
    }
