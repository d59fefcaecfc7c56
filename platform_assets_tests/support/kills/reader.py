"""A reader that never stops: a process that adds up all tables of the newest release, again and again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets_tests.support.kills.story import Sums, sums
from platform_assets_tests.support.shelf import FORKS

_PATIENCE_S = 120


@dataclass(frozen=True)
class Watched:
    """What the reader saw.

    Args:
        reads: how often it looked at a release.
        mixed: what it saw that was no whole release, or could not be read; at most five of them.
        count: of these, all.
    """

    reads: int
    mixed: tuple[str, ...]
    count: int


class Reader:
    """The process; close it at the end.

    Args:
        pause_s: between two looks. Without one it takes a core for itself.
    """

    def __init__(self, pause_s: float = 0) -> None:
        self._pipe, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_read, args=(theirs, pause_s), daemon=True)
        self._process.start()

    def watch(self, lake: Path, columns: tuple[tuple[str, str], ...], whole: Collection[Sums]) -> None:
        """Look at a lake from now on; returns after the first look."""
        self._pipe.send((lake, columns, frozenset(whole)))
        self._answer()

    def stop(self, at_least: int) -> Watched:
        """Look away, but not before so many looks."""
        self._pipe.send(at_least)
        found: Watched = self._answer()
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join(_PATIENCE_S)

    def _answer(self) -> Watched:
        if not self._pipe.poll(_PATIENCE_S):
            raise TimeoutError("the reader says nothing")
        found: Watched = self._pipe.recv()
        return found


def _read(pipe: Connection, pause_s: float) -> None:
    while (asked := pipe.recv()) is not None:
        lake, columns, whole = asked
        reads, mixed, at_least = 0, list[str](), None
        while at_least is None or reads < at_least:
            try:
                release = current_release(Lake.at(lake))
                seen = sums(Lake.at(lake), columns, release)
                if seen not in whole:
                    mixed.append(f"release {release.number} read as {seen}")
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is told
                mixed.append(repr(error))
            reads += 1
            if reads == 1:
                pipe.send(None)
            if at_least is None and pipe.poll(pause_s):
                at_least = pipe.recv()
        pipe.send(Watched(reads, tuple(mixed[:5]), len(mixed)))
