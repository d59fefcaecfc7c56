"""The folders of an installation, for those who may look into them, and what is wrong with folders that are there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.access import given_beyond, is_unused, make_folder
from platform_assets.lakehouse.layout import NO_READERS
from platform_assets.places import folder_of

if TYPE_CHECKING:
    from platform_assets.settings import Settings


@dataclass(frozen=True)
class OpenFolder:
    """A folder into which more people may look than the settings say.

    Args:
        given: what its mode gives beyond, as bits.
        close: the command that takes it back.
    """

    folder: Path
    given: int
    close: str


def make_folders(settings: Settings) -> None:
    """Make the state folder and, in a lake that others may read, the folders that are not for them.

    A lake of its own mode may have been copied or restored: folders that are not for readers are closed where they are
    open. What cannot be made or closed is told by whoever writes there next, and by `open_folders`.
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
    """Yield folders that are there and give more than the settings say, those above others first."""
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
    """Return what takes bits back from group and others, as `chmod` takes it."""
    names = {"g": given >> 3 & 7, "o": given & 7}
    return ",".join(
        f"{who}-{''.join(letter for bit, letter in ((4, 'r'), (2, 'w'), (1, 'x')) if bits & bit)}"
        for who, bits in names.items()
        if bits
    )
