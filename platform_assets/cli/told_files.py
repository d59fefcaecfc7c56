"""Files in no table that a refresh has told of before: each is told in full once, and then counted as it stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from platform_assets.cli.files_view import print_left
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.records.history import ArrivalRecord
from platform_assets.sources.landing import Problem

_MOST = 1 << 16
"""Files of which it is remembered that they were told; of the oldest beyond it is forgotten."""


def print_left_anew(
    state: Path, problems: Sequence[Problem], refused: Sequence[ArrivalRecord], told: Sequence[ArrivalRecord] = ()
) -> None:
    """Tell of files that no earlier refresh told of, count the others, and remember all.

    Args:
        state: the folder in which it is remembered; where that cannot be, all are told again.
        problems: of files that were not taken.
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
    print_left(
        [one for mark, one in left.items() if mark not in known],
        [one for mark, one in stay.items() if mark not in known],
        len(known.intersection([*left, *stay])),
        len({*map(_of_refused, told)} - {*stay}),
    )
    now = {*left, *stay, *map(_of_refused, told)}
    kept = [*(mark for mark in before if mark not in now), *sorted(now)][-_MOST:]
    if now - known:
        with suppress(OSError, LakeError):
            file.replace(json.dumps(kept).encode())


def _of_refused(file: ArrivalRecord) -> str:
    return _mark(file.path, file.sha256, file.reason or "")


def _mark(*parts: str) -> str:
    """What is remembered of a file: names and reasons may quote what somebody wants to have erased."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
