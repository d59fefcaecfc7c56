"""A platform opened for work: its contracts, its lake and its ledger, checked against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from logging import getLogger
from typing import TYPE_CHECKING

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import Platform, lake_to_write
from platform_assets.ledger.errors import LedgerReadOnlyError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import sync
from platform_assets.operations.breaker import roll_back_opened
from platform_assets.operations.folders import make_folders
from platform_assets.operations.recovery import caught_up

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_log = getLogger(__name__)


@contextmanager
def open_platform(settings: Settings, notice: Callable[[str], None] = _log.warning) -> Iterator[Platform]:
    """Open the platform ready for work: the ledger migrated and brought in line with the lake.

    Args:
        notice: told, in a sentence each, what was mended because the ledger was behind the lake.

    Raises:
        OtherHistoryError: the ledger knows what the lake does not have; nothing was written.
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
            roll_back_opened(platform, notice)
    finally:
        ledger.close()


@contextmanager
def open_platform_to_look(
    settings: Settings, notice: Callable[[str], None] = _log.warning, limit: Callable[[str], None] = _log.warning
) -> Iterator[Platform]:
    """Open the platform only to look: as `open_platform`, or as it is where the ledger cannot be written.

    Args:
        limit: told that nothing can be written.
    """
    opened = ExitStack()
    try:
        platform = opened.enter_context(open_platform(settings, notice))
    except LedgerReadOnlyError as error:
        ledger = opened.enter_context(Ledger.open_copy(settings.ledger_url.get_secret_value()))
        platform = Platform(settings, load_catalogue(settings), lake_to_write(settings), ledger)
        platform.sync()  # the ledger may have been the last thing for which there was no room
        limit(f"nothing can be written, so this is only what is there: {error.what}")
    with opened:
        yield platform
