"""Ties: days between which a record has moved are published together or not at all.

If only the day that the record came to were published, it would be counted twice; if only the one it left, nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import date

Tie = tuple[date, date]
"""The day that a record has left, and the one that it came to."""


def held_together(failing: Collection[date], ties: Iterable[Tie]) -> dict[date, date]:
    """The days that a failing one keeps from being published, over any number of ties, each with that failing day.

    Args:
        failing: days that are not published.
        ties: between any days.
    """
    neighbours = _neighbours(ties)
    roots: dict[date, date] = {}
    for root in sorted(failing):
        reached = [root]
        while reached:
            for day in neighbours[reached.pop()] - roots.keys() - set(failing):
                roots[day] = root
                reached.append(day)
    return roots


def groups(days: Collection[date], ties: Iterable[Tie]) -> tuple[tuple[date, ...], ...]:
    """Some days as groups of which none is tied to another, each in order, those with the oldest days first."""
    left = set(days)
    neighbours = _neighbours((day, other) for day, other in ties if day in left and other in left)
    tied: list[tuple[date, ...]] = []
    for first in sorted(left):
        if first not in left:
            continue
        together, reached = {first}, [first]
        while reached:
            new = neighbours[reached.pop()] - together
            together |= new
            reached += new
        left -= together
        tied.append(tuple(sorted(together)))
    return tuple(tied)


def _neighbours(ties: Iterable[Tie]) -> defaultdict[date, set[date]]:
    neighbours: defaultdict[date, set[date]] = defaultdict(set)
    for day, other in ties:
        neighbours[day].add(other)
        neighbours[other].add(day)
    return neighbours
