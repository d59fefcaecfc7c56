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

    def put_into(self, folder: Path) -> None:
        """Make a folder the demo's, unless something lies there already that the demo has not made."""
        folder.mkdir(parents=True, exist_ok=True)
        if holds_nothing(folder):
            write_whole(folder / _IN_FOLDER, self.token)

    def is_in(self, folder: Path) -> bool:
        """Whether this demo made a folder."""
        try:
            return (folder / _IN_FOLDER).read_text(encoding="utf-8", errors="replace") == self.token
        except (FileNotFoundError, NotADirectoryError):
            return False

    @property
    def aside(self) -> Path:
        """Where what is being removed is moved; only this demo knows the name."""
        return self.state / f".demo-removed-{self.token}"

    def take_from(self, folder: Path) -> None:
        """Take the mark out of a folder that is given up."""
        (folder / _IN_FOLDER).unlink(missing_ok=True)


def holds_nothing(folder: Path) -> bool:
    """Whether a folder is not there or empty, but for a mark that was not finished."""
    return not folder.exists() or all(path.name == f"{_IN_FOLDER}{_UNFINISHED}" for path in folder.iterdir())


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
