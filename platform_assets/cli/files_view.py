"""Show files that were not taken, once in full and then counted, and tables that Sail does not compute."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival
from platform_assets.report import Note, Part, picked
from platform_assets.sources.landing import Problem
from platform_assets.words import alike, counted

_MOST = 8

_MOST_TOLD = 1 << 16
"""Files of which it is remembered that they were told; of the oldest beyond it is forgotten."""


def left_parts(
    problems: Sequence[Problem], refused: Sequence[Arrival], as_before: int = 0, just_told: int = 0
) -> Iterator[Part]:
    """Show what lies in the landing area and is in no table, because a person has to do something about it.

    Args:
        refused: files of which not one row was taken.
        as_before: how many more there are of which a person was told before.
        just_told: and how many of which the same command told further up.
    """
    lines = refused_lines({file.path: file.reason or "" for file in refused})
    yield from (Note("red", "refused", line) for line in lines)
    yield from (Note("yellow", "not taken", line) for line in not_taken_lines(problems))
    if as_before:
        lists = f"`platform-assets status --files` lists {'it' if as_before == 1 else 'each'} with its reason"
        yield Note("yellow", "not taken", f"{counted(as_before, 'file')} as an earlier refresh told: {lists}")
    count = len(refused) + len(problems) + just_told
    if count > 1 and not as_before:
        yield (
            f"In all {counted(count, 'file')} of the landing area in no table: `platform-assets status --files` lists "
            "each with its reason."
        )


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for all files that were refused whole for the like, by path with the reason."""
    return alike(refused.items(), _MOST)


def not_taken_lines(problems: Collection[Problem]) -> Iterator[str]:
    """Yield one line for all files that cannot be taken for the like."""
    return alike(((problem.path, problem.message) for problem in problems), _MOST)


def growing_lines(growing: Sequence[Problem]) -> Iterator[str]:
    """Yield one line for all files that only have to rest, with the time it takes; one for all that wait alike."""
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
    """Return refused files for programs."""
    return [picked(file, "table path reason") for file in refused]


def by_spark_parts(tables: Mapping[str, str]) -> Iterator[Part]:
    """Show a line for each table that Spark computes, with the reason and what to do."""
    for table, why in tables.items():
        yield Note("", "Spark computes", f"{table}: {why}; `platform-assets engine verify {table}`")


def left_anew_parts(
    state: Path, problems: Sequence[Problem], refused: Sequence[ArrivalRecord], told: Sequence[ArrivalRecord] = ()
) -> Iterator[Part]:
    """Tell of files that no earlier refresh told of, count the others, and remember all in the state folder.

    Args:
        refused: files of which not one row was taken.
        told: of these, those of which this refresh has told already.
    """
    file = located(state / "told.json")
    before: list[str] = []
    with suppress(OSError, LakeError, ValueError):
        before = [*map(str, json.loads(file.read() or b"[]"))]
    left = {_mark(one.path, one.message): one for one in problems}
    stay = {_of_refused(one): one for one in refused}
    known = {*before}
    yield from left_parts(
        [one for mark, one in left.items() if mark not in known],
        [one for mark, one in stay.items() if mark not in known],
        len(known.intersection([*left, *stay])),
        len({*map(_of_refused, told)} - {*stay}),
    )
    now = {*left, *stay, *map(_of_refused, told)}
    kept = [*(mark for mark in before if mark not in now), *sorted(now)][-_MOST_TOLD:]
    if now - known:
        with suppress(OSError, LakeError):
            file.replace(json.dumps(kept).encode())


def _of_refused(file: ArrivalRecord) -> str:
    return _mark(file.path, file.sha256, file.reason or "")


def _mark(*parts: str) -> str:
    """Return what is remembered of a file: names and reasons may quote what somebody wants to have erased."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
