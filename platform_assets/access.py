"""Set the modes of folders and files: who besides this user may read what the platform writes.

A mode is written as `chmod` takes it. A file has that of its folder without the right to execute; a process writes both
through its umask, which everything that it starts inherits.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator

_ALL = 0o777
PRIVATE_UMASK = 0o077
"""As long as the settings are not known."""


def _without_zeros(value: object) -> object:
    return value.strip().removeprefix("0o").lstrip("0") if isinstance(value, str) else value


StateMode = Annotated[Literal["700", "750", "770"], BeforeValidator(_without_zeros)]
"""Of the state folder: this user alone, a group that reads, a group that works with it."""
LakeMode = Annotated[Literal["", "700", "750", "755", "770", "775"], BeforeValidator(_without_zeros)]
"""Of a lake, which may be meant for readers; empty for that of the state folder."""


@dataclass(frozen=True)
class Access:
    """Modes of an installation's folders.

    Args:
        state: of the state folder, and of what nobody reads in a lake.
        lake: of what is read in a lake.
    """

    state: int
    lake: int

    @classmethod
    def of(cls, state: str, lake: str) -> Access:
        """Return the access that settings name."""
        return cls(int(state, 8), int(lake or state, 8))

    @property
    def umask(self) -> int:
        """Return what a process never permits; what one folder permits and another does not, the folder withholds."""
        return _ALL & ~(self.state | self.lake)

    @property
    def lake_is_wider(self) -> bool:
        """Return whether there is somebody who may read the lake and not the state folder."""
        return bool(self.lake & ~self.state)


def make_folder(folder: Path, mode: int) -> None:
    """Make a folder, and those above it that are missing, for those whom a mode names; one that is there stays."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    with suppress(FileExistsError):  # somebody else was faster
        folder.mkdir(mode)
        _open_to(folder, mode)


def take_folder(folder: Path, mode: int, besides: Path | None) -> None:
    """Make a folder as `make_folder` does, and give its mode to one that somebody has made and nobody has used.

    Made by hand, to put files into it, it has the mode that every folder gets and nobody has chosen.

    Args:
        besides: what may lie in it already, if anything.
    """
    make_folder(folder, mode)
    if given_beyond(folder, mode) and is_unused(folder, besides):
        _open_to(folder, mode)


def is_unused(folder: Path, besides: Path | None) -> bool:
    """Return whether a folder is this user's own, and there is nothing in it but what may lie there before it is used.

    One that is open to all as `/tmp` is, is for others too, and a link may lead anywhere.
    """
    try:
        seen = folder.stat(follow_symlinks=False)
        is_own = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & stat.S_ISVTX
        return is_own and all(entry == besides for entry in folder.iterdir())
    except OSError:
        return False


def _open_to(folder: Path, mode: int) -> None:
    """Give a folder a mode; what lies in it belongs to its group, where the group may look into it."""
    folder.chmod(mode | (stat.S_ISGID if mode & stat.S_IRWXG else 0))


def given_beyond(path: Path, mode: int) -> int:
    """Return what a folder gives to others that a mode does not; 0 where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & _ALL & ~mode
    except FileNotFoundError:
        return 0


def is_ours_alone(path: Path) -> bool:
    """Return whether nobody but this user and the administrator can have written a file or can write it."""
    seen = path.stat(follow_symlinks=False)
    return seen.st_uid in (0, os.geteuid()) and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
