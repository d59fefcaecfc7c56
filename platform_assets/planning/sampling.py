"""Which days stand for all the others: those a transform is tried on, and those that are verified."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date


def days_to_probe(rows: Mapping[date, int], together: int) -> tuple[date, ...]:
    """The days that are most likely to show what a transform should not do; none where they could show nothing new.

    One with days on both sides, because it tells both who looks back and who looks ahead; among those the one with most
    rows, because it has most ties. Without such a day all that there are: each tells only who looks at the other.

    A day that was computed alone tells nothing of neighbours, nor few days together of those farther apart. So as many
    days as never before have something new to show.

    Args:
        rows: of every day that was computed together.
        together: most days with rows that the transform has made together before.
    """
    ordered = [day for day in sorted(rows) if rows[day]]
    # A neighbour that comes out empty may have been looked at all the same.
    if together >= max(len(ordered), min(len(rows), 2)):
        return ()
    inner = ordered[1:-1]
    return (max(inner, key=lambda day: (rows[day], day)),) if inner else tuple(ordered)


@dataclass(frozen=True)
class Draw:
    """How days are drawn that are verified in place of all.

    Args:
        most: how many besides the newest; fewer where there are not so many.
        seed: the same one draws the same days.
    """

    most: int = 3
    seed: int = 0

    def of(self, days: Collection[date]) -> tuple[date, ...]:
        """The newest of some days and others drawn at random, oldest first."""
        ordered = sorted(days)
        older, newest = ordered[:-1], ordered[-1:]
        drawn = random.Random(self.seed).sample(older, min(self.most, len(older)))  # noqa: S311
        return (*sorted(drawn), *newest)
