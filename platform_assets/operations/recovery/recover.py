"""Recovery on demand: what a killed process began is finished, indexed, and told to a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import Author, Platform, lake_to_write
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import newest_release
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import sync
from platform_assets.operations.recovery.catch_up import caught_up

if TYPE_CHECKING:
    from platform_assets.settings import Settings


@dataclass(frozen=True)
class Recovered:
    """What a recovery did.

    Args:
        release: the newest afterwards; -1 if nothing was ever published.
        done: in the lake, one sentence each.
        indexed: publications that the ledger lacked, each with its release.
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
        PlatformError: a table was changed by something else than a publication, or somebody is publishing all the time.
    """
    with Ledger.open(settings.ledger_url.get_secret_value()) as ledger:
        platform = Platform(settings, load_catalogue(settings), lake_to_write(settings), ledger)
        before = sync(platform.lake, ledger)
        mended = caught_up(ledger, before)
        done = recover(platform.lake) if undo is None else undo_unreleased(platform.lake, undo.why, undo.who)
        added = (*before.added, *sync(platform.lake, ledger).added)
        known = ledger.indexed()
        return Recovered(newest_release(platform.lake), tuple(done), {name: known[name] for name in added}, mended)
