"""Files that were not taken, as people read of them: by reason with an example, and how to have each of them listed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from platform_assets.cli.console import console, say
from platform_assets.records.manifest import Arrival
from platform_assets.sources.landing import Problem
from platform_assets.words import alike, counted

_MOST = 8
"""Reasons that are told with an example."""


def print_left(problems: Sequence[Problem], refused: Sequence[Arrival], as_before: int = 0, just_told: int = 0) -> None:
    """What lies in the landing area and is not in any table, because a person has to do something about it.

    Args:
        problems: of files that were not taken; what only has to be waited for is told elsewhere.
        refused: files of which not one row was taken.
        as_before: how many more there are of which a person was told before.
        just_told: and how many of which the same command told further up.
    """
    for line in refused_lines({file.path: file.reason or "" for file in refused}):
        say("[red]refused[/]", line)
    for line in not_taken_lines(problems):
        say("[yellow]not taken[/]", line)
    if as_before:
        lists = f"`platform-assets status --files` lists {'it' if as_before == 1 else 'each'} with its reason"
        say("[yellow]not taken[/]", f"{counted(as_before, 'file')} as an earlier refresh told: {lists}")
    count = len(refused) + len(problems) + just_told
    if count > 1 and not as_before:
        console.print(
            f"In all {counted(count, 'file')} of the landing area in no table: `platform-assets status --files` lists "
            "each with its reason.",
            highlight=False,
            soft_wrap=True,
        )


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """One line for all files that were refused whole for the like, by path with the reason."""
    return alike(refused.items(), _MOST)


def not_taken_lines(problems: Collection[Problem]) -> Iterator[str]:
    """One line for all files that cannot be taken for the like."""
    return alike(((problem.path, problem.message) for problem in problems), _MOST)


def growing_lines(growing: Sequence[Problem]) -> Iterator[str]:
    """One line for all files that only have to rest, with the time it takes; and one for all that wait for the same."""
    resting = [problem for problem in growing if problem.rests_in_s is not None]
    if resting:
        wait_s = max(1, math.ceil(max(problem.rests_in_s or 0.0 for problem in resting)))
        more, them = (f" and {counted(len(resting) - 1, 'other file')}", "them") if len(resting) > 1 else ("", "it")
        yield (
            f"{resting[0].path}{more} changed a moment ago and may still grow: a refresh takes {them} in {wait_s} s if "
            f"nobody writes to {them} any more"
        )
    yield from alike(((problem.path, problem.message) for problem in growing if problem.rests_in_s is None), _MOST)


def refused_json(refused: Sequence[Arrival]) -> list[dict[str, str | None]]:
    """Refused files for programs."""
    return [{"table": file.table, "path": file.path, "reason": file.reason} for file in refused]
