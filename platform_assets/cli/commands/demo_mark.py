"""The mark of a demo: a token in the state folder, and the same in each folder that the demo itself made.

A folder without it was there before, or took the place of the demo's since. No demo removes such a one.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from platform_assets.lakehouse.layout import located

_MARK = ".demo.json"
_IN_FOLDER = ".demo"
_UNFINISHED = ".unfinished"
_TOKEN = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Mark:
    """The mark of one demo.

    Args:
        state: the state folder it lies in.
        token: by which its folders are known.
        is_being_removed: whether somebody asked to remove the demo, and that may have been killed.
    """

    state: Path
    token: str
    is_being_removed: bool = False

    @classmethod
    def of(cls, state: Path) -> Mark | None:
        """The mark in a state folder; None without one that a demo wrote."""
        try:
            said = json.loads((state / _MARK).read_text(encoding="utf-8"))
            # A token is part of the name of a folder that is removed: another one would lead elsewhere.
            if not _TOKEN.fullmatch(said["token"]):
                return None
            return cls(state, said["token"], bool(said["is_being_removed"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return None

    @classmethod
    def new(cls, state: Path) -> Mark:
        """A mark that nobody has yet."""
        return cls(state, token_hex(16))

    def keep(self) -> None:
        """Write it into the state folder."""
        said = {"token": self.token, "is_being_removed": self.is_being_removed}
        self.state.mkdir(parents=True, exist_ok=True)
        write_whole(self.state / _MARK, json.dumps(said) + "\n")

    def forget(self) -> None:
        """Remove it, when nothing of the demo is left."""
        (self.state / _MARK).unlink(missing_ok=True)

    def put_into(self, place: str | os.PathLike[str]) -> None:
        """Make a folder or a place in a bucket the demo's, unless something lies there already that others made."""
        folder = located(place)
        folder.make()
        if holds_nothing(place):
            for unfinished in folder.names():
                (folder / unfinished).remove()
            (folder / _IN_FOLDER).replace(self.token.encode())

    def is_in(self, place: str | os.PathLike[str]) -> bool:
        """Whether this demo made a folder or what lies in a bucket."""
        try:
            return (located(place) / _IN_FOLDER).read() == self.token.encode()
        except NotADirectoryError:
            return False

    @property
    def aside(self) -> Path:
        """Where what is being removed is moved; only this demo knows the name."""
        return self.state / f".demo-removed-{self.token}"

    def take_from(self, folder: Path) -> None:
        """Take the mark out of a folder that is given up."""
        (folder / _IN_FOLDER).unlink(missing_ok=True)


def holds_nothing(place: str | os.PathLike[str]) -> bool:
    """Whether nothing lies in a folder or below a URL, but for marks that whoever was killed did not finish."""
    return all(name.startswith(f".{_IN_FOLDER}.") for name in located(place).names())


def marks(path: Path) -> bool:
    """Whether a file is a demo's mark in a folder."""
    return path.name == _IN_FOLDER


def write_whole(file: Path, content: str) -> None:
    """Write or replace a file so that whoever is killed or loses power leaves it as it was or whole."""
    unfinished = file.with_name(file.name + _UNFINISHED)
    with unfinished.open("w", encoding="utf-8") as written:
        written.write(content)
        written.flush()
        os.fsync(written.fileno())
    unfinished.replace(file)
