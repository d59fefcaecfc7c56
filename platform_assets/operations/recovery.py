"""Recovery on demand: what a killed process began is finished, indexed, and told to a person."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import Author, Platform, lake_to_write
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import newest_release
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import SyncResult, sync
from platform_assets.records.notes import CatchUp
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_MEANWHILE = timedelta(minutes=1)
"""What another process published since is indexed by that process, in less than that."""


def caught_up(ledger: Ledger, synced: SyncResult) -> tuple[str, ...]:
    """Say what the ledger lacked, and which days are held again.

    The index comes back from the manifests, and with it what keeps the days that were rolled back. Other holds and
    people's decisions are in the ledger alone.

    A single publication is what a process leaves that died before it could index it; a ledger without any, or without
    several, is a new one or was restored from a backup.

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
    told = f"Exposures are told of release {last.release} alone: which others they were told of is not known any more."
    said = (lacked, *held, told) if not synced.known and ledger.outbox.messages() else (lacked, *held)
    ledger.notes.catch_up(CatchUp(first.release, last.release, " ".join(said), datetime.now(UTC)))
    return said


def held_again(ledger: Ledger, publications: Collection[str]) -> tuple[str, ...]:
    """Return what is held because of rollbacks that were not indexed before, one sentence for each."""
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
        done: in the lake, one sentence each.
        mended: what else a person should know, one sentence each.
    """

    release: int
    done: tuple[str, ...]
    indexed: Mapping[str, int]
    mended: tuple[str, ...]


def recover_installation(settings: Settings, undo: Author | None = None) -> Recovered:
    """Finish what killed processes began, in the lake and then in the ledger; repeating it is harmless.

    Args:
        undo: on whose behalf tables are put back to what the newest release shows, instead of finishing what was begun.

    Raises:
        OtherHistoryError: the ledger knows what the lake does not have; nothing was written.
    """
    with Ledger.open(settings.ledger_url.get_secret_value()) as ledger:
        platform = Platform(settings, load_catalogue(settings), lake_to_write(settings), ledger)
        before = sync(platform.lake, ledger)
        mended = caught_up(ledger, before)
        done = recover(platform.lake) if undo is None else undo_unreleased(platform.lake, undo.why, undo.who)
        added = (*before.added, *sync(platform.lake, ledger).added)
        known = ledger.indexed()
        return Recovered(newest_release(platform.lake), tuple(done), {name: known[name] for name in added}, mended)
