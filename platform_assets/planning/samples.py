"""Which days stand for all the others: the one a transform is tried on, and those that are verified."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from datetime import date


def day_to_probe(rows: Mapping[date, int]) -> date | None:
    """The day that is most likely to show what a transform should not do.

    One with days on both sides, because that alone tells who looks at neighbours from who does not; among those the
    one with most rows, because it has most ties. None where no day has rows.

    Args:
        rows: of every day that was computed together.
    """
    ordered = sorted(rows)
    inner = [day for day in ordered[1:-1] if rows[day]]
    candidates = inner or [day for day in ordered if rows[day]]
    return max(candidates, key=lambda day: (rows[day], day), default=None)


def days_to_verify(days: Collection[date], most: int, seed: int) -> tuple[date, ...]:
    """The newest of some days and others drawn at random, oldest first.

    Args:
        days: to choose from.
        most: how many to draw besides the newest; fewer where there are not so many.
        seed: the same one draws the same days.
    """
    ordered = sorted(days)
    older, newest = ordered[:-1], ordered[-1:]
    drawn = random.Random(seed).sample(older, min(most, len(older)))  # noqa: S311
    return (*sorted(drawn), *newest)
