"""A story: commands of one installation, one after the other, each of which can be killed and run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import Release
from platform_assets.settings import Settings
from platform_assets_tests.support.jvm import Jvm

Sums = tuple[int | Decimal | None, ...]
"""The sum of one column of every table of a story; None where the table has no release yet."""


@dataclass(frozen=True)
class Command:
    """What a user would run.

    Args:
        name: of the command.
        run: with the state folder, the seed, and the JVM where one is needed. Killed anywhere and run again it does
            what it would have done.
        before: brings about what it finds.
    """

    name: str
    run: Callable[[Path, int, Jvm | None], None]
    before: Callable[[Path, int], None] | None = None


@dataclass(frozen=True)
class Story:
    """Commands, and what plain Python says must be there after each.

    Args:
        name: of the story.
        columns: of every table that readers add up.
        settings: of an installation in a state folder.
        begin: makes the installation.
        commands: in their order.
        expected: the sums after a command, for a seed.
        lost_or_twice: what is wrong with the rows that are there after a command, for a seed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    settings: Callable[[Path], Settings]
    begin: Callable[[Path, int, Jvm | None], None]
    commands: tuple[Command, ...]
    expected: Callable[[int, str], Sums]
    lost_or_twice: Callable[[Path, int, str], list[str]]


def sums(lake: Lake, columns: tuple[tuple[str, str], ...], release: Release) -> Sums:
    """What a reader of a release adds up."""
    return tuple(
        pc.sum(read_arrow(lake, table, columns=[column], release=release)[column]).as_py() or 0
        if table in release.versions
        else None
        for table, column in columns
    )
