"""Decide rollbacks: the content of days before some publications, and obstacles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.records.code_version import Attempt, Version

TableDay = tuple[str, date]
"""A table's name and a day of it."""

NEVER = ""
"""In place of a publication: before it, the day had never been computed."""


@dataclass(frozen=True)
class Restoration:
    """New content for the days of some publications.

    Args:
        back_to: for every changed day, the publication whose content it gets; `NEVER` for none.
        undone: for every such day, the publications that are undone, newest first.
        in_the_way: days with a later publication, which stays without the cascade: that publication, the newest.
    """

    back_to: Mapping[TableDay, str]
    undone: Mapping[TableDay, tuple[str, ...]]
    in_the_way: Mapping[TableDay, str]


def restoration(
    chosen: Collection[str],
    histories: Mapping[TableDay, Sequence[str]],
    compactions: Collection[str] = (),
    *,
    cascade: bool = False,
) -> Restoration:
    """Return the content of days before the oldest of some publications that changed them.

    Args:
        histories: all publications of every day that one of them published, newest first.
        compactions: publications that kept the content, which are undone with what they compacted.
        cascade: whether later publications of these days are undone too.
    """
    back_to: dict[TableDay, str] = {}
    undone: dict[TableDay, tuple[str, ...]] = {}
    in_the_way: dict[TableDay, str] = {}
    for day, history in histories.items():
        oldest = max((place for place, publication in enumerate(history) if publication in chosen), default=None)
        if oldest is None:
            continue
        goes = tuple(history[: oldest + 1])
        later = [publication for publication in goes if publication not in chosen and publication not in compactions]
        if later and not cascade:
            in_the_way[day] = later[0]
            continue
        back_to[day] = history[oldest + 1] if oldest + 1 < len(history) else NEVER
        undone[day] = goes
    return Restoration(back_to, undone, in_the_way)


def following(
    of_leaders: Restoration, followers: Mapping[TableDay, TableDay], histories: Mapping[TableDay, Sequence[str]]
) -> Restoration:
    """Add days that follow others, such as quarantined ones, and restore them as far as these.

    Args:
        followers: days, each with the one that it follows.
    """
    back_to, undone = dict(of_leaders.back_to), dict(of_leaders.undone)
    for day, leader in followers.items():
        alone = restoration(of_leaders.undone.get(leader, ()), {day: histories.get(day, ())}, cascade=True)
        back_to |= alone.back_to
        undone |= alone.undone
    return Restoration(back_to, undone, of_leaders.in_the_way)


def refusals(undone: Iterable[tuple[str, Version]], today: Version) -> set[Attempt]:
    """Return content that must not be published again: the rolled-back one, and today's code on the same inputs.

    Args:
        undone: former fingerprint of each day, with its code if known.
    """
    return {
        Attempt(fingerprint, version)
        for fingerprint, made_by in undone
        if fingerprint
        for version in (made_by, today)
        if version.code
    }


def back_again(refused: Collection[Attempt], fingerprint: str, made_by: Version) -> set[Attempt]:
    """Return published content that people had refused, with other refusals of the same input.

    Args:
        made_by: its code, if known.
    """
    same_input = {attempt for attempt in refused if attempt.fingerprint == fingerprint}
    is_back = any(attempt.made_by == Version() or not any(made_by.differs(attempt.made_by)) for attempt in same_input)
    return same_input if is_back else set()
