"""The sha256 of files that were touched since they were taken, to tell a replaced one: read once for each version.

A file that a copy or a backup gave another time is looked at by every listing, of every process. What it hashes to is
remembered by all that tells its versions apart. That is enough to say that a file is as it was; what is recorded of one
that is taken is hashed anew, twice.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from platform_assets.sources.content import State

_MOST = 1 << 16
"""Files of which a version is remembered."""
RESTS_NS = 2_000_000_000
"""Within this time of its last change a file may change once more, and no time of it tell that."""

_Known = dict[str, tuple[State, str]]


class Hashes:
    """The sha256 of versions of files.

    Args:
        file: where processes share it; None for one process alone. One that cannot be read or written costs a look.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file: Final = file
        self._known: _Known = {}
        self._is_looked_up = self._is_new = False

    @staticmethod
    @cache
    def in_state(state: Path) -> Hashes:
        """Those of an installation, which its process looks up in memory first."""
        return Hashes(state / "hashed.json")

    def of(self, file: Path, state: State) -> str | None:
        """The sha256 of a version of a file; None where nobody read it yet."""
        if (found := self._found(file, state)) is None and not self._is_looked_up:
            self._known |= self._kept()
            self._is_looked_up = True  # until somebody lets others know, and may know of others
            found = self._found(file, state)
        return found

    def learn(self, file: Path, state: State, sha256: str) -> str:
        """Remember what somebody has just read, if the version can be told from the next one; gives it back."""
        if time.time_ns() - state[-1] >= RESTS_NS:
            self._known[str(file)] = state, sha256
            self._is_new = True
        return sha256

    def keep(self) -> None:
        """Let other processes know what was learnt; of two at once, one may have to read again."""
        self._is_looked_up = False
        if not self._is_new:
            return
        self._is_new = False
        self._known = dict([*(self._kept() | self._known).items()][-_MOST:])
        if self._file is None:
            return
        with suppress(OSError):
            unfinished = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            unfinished.write_text(json.dumps(self._known), encoding="utf-8")
            unfinished.replace(self._file)

    def _found(self, file: Path, state: State) -> str | None:
        known, sha256 = self._known.get(str(file), (None, None))
        return sha256 if known == state else None

    def _kept(self) -> _Known:
        if self._file is None:
            return {}
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {
                str(path): ((int(size), int(inode), int(modified), int(changed)), str(sha256))
                for path, ((size, inode, modified, changed), sha256) in json.loads(self._file.read_bytes()).items()
            }
        return {}
