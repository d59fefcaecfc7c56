"""Open a platform for work: its contracts, lake and ledger, checked against each other."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import Author, Platform, lake_to_write
from platform_assets.lakehouse.layout import NO_READERS
from platform_assets.lakehouse.publish import recover
from platform_assets.lakehouse.releases import newest_release
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.ledger.errors import LedgerReadOnlyError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import SyncResult, sync
from platform_assets.operations.breaker import roll_back_opened
from platform_assets.places import folder_of, given_beyond, is_unused, make_folder
from platform_assets.records.outbox import CatchUp
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.settings import Settings


_log = getLogger(__name__)


@contextmanager
def open_platform(settings: Settings, notice: Callable[[str], None] = _log.warning) -> Iterator[Platform]:
    """Open the platform for work: migrate the ledger and index what it lacks from the lake.

    Args:
        notice: called with a sentence for each repair made because the ledger was behind the lake.

    Raises:
        OtherHistoryError: the ledger has releases that the lake lacks; nothing was written.
    """
    catalogue = load_catalogue(settings)
    lake = lake_to_write(settings)
    make_folders(settings)
    ledger = Ledger.open(settings.ledger_url.get_secret_value())
    try:
        platform = Platform(settings, catalogue, lake, ledger)
        for sentence in caught_up(ledger, sync(lake, ledger)):
            notice(sentence)
        roll_back_opened(platform, notice)  # which a process that died had yet to
        try:
            yield platform
        finally:
            platform.held.close()
            roll_back_opened(platform, notice)
    finally:
        ledger.close()


@contextmanager
def open_platform_to_look(
    settings: Settings, notice: Callable[[str], None] = _log.warning, limit: Callable[[str], None] = _log.warning
) -> Iterator[Platform]:
    """Open the platform for reading: like `open_platform`, but without changes if the ledger cannot be written."""
    opened = ExitStack()
    try:
        platform = opened.enter_context(open_platform(settings, notice))
    except LedgerReadOnlyError as error:
        ledger = opened.enter_context(Ledger.open_copy(settings.ledger_url.get_secret_value()))
        platform = Platform(settings, load_catalogue(settings), lake_to_write(settings), ledger)
        platform.sync()  # the ledger may have been the last thing for which there was no room
        limit(f"the disk or ledger cannot be written, so the platform is open read-only: {error.what}")
    with opened:
        yield platform


@dataclass(frozen=True)
class OpenFolder:
    """A folder that is open to more people than the settings say.

    Args:
        given: the excess bits of its mode.
        close: command that removes them.
    """

    folder: Path
    given: int
    close: str


def make_folders(settings: Settings) -> None:
    """Make the state folder and, in a lake that others may read, the folders that are closed to them.

    A lake may have been copied or restored with other modes: folders that are not for readers are closed. A failure
    shows when something is written there, and in `open_folders`.
    """
    settings.make_state()
    lake = folder_of(settings.lake)
    if not lake or not settings.access.lake_is_wider:
        return
    with suppress(OSError):
        make_folder(lake, settings.access.lake)
    for folder in (lake / name for name in NO_READERS):
        with suppress(OSError):
            make_folder(folder, settings.access.state)
            if given_beyond(folder, settings.access.state):
                folder.chmod(settings.access.state)


def open_folders(settings: Settings) -> Iterator[OpenFolder]:
    """Yield existing folders that are open to more people than the settings say, parents first."""
    access, lake = settings.access, folder_of(settings.lake)
    # One that is not in use yet is closed when it is.
    wanted = [] if is_unused(settings.state, folder_of(settings.landing)) else [(settings.state, access.state)]
    if lake:
        wanted += [(lake, access.lake)] if not lake.is_relative_to(settings.state) else []
        wanted += [(lake / name, access.state) for name in NO_READERS] if access.lake_is_wider else []
    for folder, mode in wanted:
        if given := given_beyond(folder, mode):
            yield OpenFolder(folder, given, f"chmod -R {_taken(given)} {shlex.quote(str(folder))}")


def _taken(given: int) -> str:
    """Return the argument of `chmod` that removes bits from group and others."""
    names = {"g": given >> 3 & 7, "o": given & 7}
    return ",".join(
        f"{who}-{''.join(letter for bit, letter in ((4, 'r'), (2, 'w'), (1, 'x')) if bits & bit)}"
        for who, bits in names.items()
        if bits
    )


_MEANWHILE = timedelta(minutes=1)
"""What another process published since is indexed by that process, in less than that."""


def caught_up(ledger: Ledger, synced: SyncResult) -> tuple[str, ...]:
    """Say what the ledger lacked, and which days are held again.

    The index comes back from the manifests, and with it the holds of rollbacks. Other holds and people's decisions are
    in the ledger alone.

    A process that died before indexing leaves a single publication; a ledger that lacks several, or has none, is new or
    was restored from a backup.

    Returns:
        What a person should know, one sentence each; nothing where the ledger lacked nothing but the index of it.
    """
    heads = [head for name in synced.added if (head := ledger.head(name))]
    held = held_again(ledger, synced.added)
    missed = [head for head in heads if held or head.created_at < datetime.now(UTC) - _MEANWHILE]
    if not heads or (synced.known and len(missed) < 2):
        return ()
    first, last = heads[0], heads[-1]
    lacked = (
        f"The ledger lacked releases {first.release} to {last.release}, of {first.created_at:%Y-%m-%d %H:%M} to "
        f"{last.created_at:%Y-%m-%d %H:%M} UTC, and has indexed them. Holds and people's decisions from that time "
        "are not in it, unless it is a copy from after."
    )
    one = f"Exposures are notified of release {last.release} only: earlier notifications are not on record any more."
    notices = (lacked, *held, one) if not synced.known and ledger.outbox.messages() else (lacked, *held)
    ledger.notes.catch_up(CatchUp(first.release, last.release, " ".join(notices), datetime.now(UTC)))
    return notices


def held_again(ledger: Ledger, publications: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each hold of rollbacks that were not indexed before."""
    holds = [hold for hold in ledger.holds() if hold.is_of_good_content]
    said: list[str] = []
    for head in filter(None, map(ledger.head, publications)):
        its = [hold for hold in holds if (hold.run, hold.created_at) == (head.run, head.created_at)]
        if its:
            tables = sorted({hold.table for hold in its})
            days = {(hold.table, hold.day) for hold in its}
            said.append(
                f"Held again, as {head.who} had rolled back: {counted(len(days), 'day')} of {', '.join(tables)}; "
                f"{head.why}."
            )
    return tuple(said)


@dataclass(frozen=True)
class Recovered:
    """What a recovery did.

    Args:
        release: the newest afterwards; -1 if nothing was ever published.
        done: repairs of the lake, one sentence each.
        mended: other remarks for a person, one sentence each.
    """

    release: int
    done: tuple[str, ...]
    indexed: Mapping[str, int]
    mended: tuple[str, ...]


def recover_installation(settings: Settings, undo: Author | None = None) -> Recovered:
    """Finish what killed processes began, in the lake and then in the ledger; idempotent.

    Args:
        undo: author of the decision to return tables to the newest release, instead of finishing what was begun.
    """
    with Ledger.open(settings.ledger_url.get_secret_value()) as ledger:
        platform = Platform(settings, load_catalogue(settings), lake_to_write(settings), ledger)
        before = sync(platform.lake, ledger)
        mended = caught_up(ledger, before)
        done = recover(platform.lake) if undo is None else undo_unreleased(platform.lake, undo.why, undo.who)
        added = (*before.added, *sync(platform.lake, ledger).added)
        known = ledger.indexed()
        return Recovered(newest_release(platform.lake), tuple(done), {name: known[name] for name in added}, mended)
