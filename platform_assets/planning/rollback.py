"""Rolling back, decided: what days were before some publications, and what stands in the way."""

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
    """What becomes of the days of some publications.

    Args:
        back_to: for every day that changes, the publication whose content it gets; `NEVER` for none.
        undone: for every such day, the publications whose content goes, newest first.
        in_the_way: days that a later publication made something else of, which stays unless the cascade is asked for:
            that publication, the newest.
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
    """Return what days were before the oldest of some publications that made something of them.

    Args:
        histories: of every day that one of them published, all publications that did, newest first.
        compactions: publications that left the content as it was, which go with what they compacted.
        cascade: whether what later publications made of these days goes too.
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
    """With days that are published together with others, as those quarantined are, put back as far as these.

    Args:
        followers: days, each with the one that it is published with.
    """
    back_to, undone = dict(of_leaders.back_to), dict(of_leaders.undone)
    for day, leader in followers.items():
        alone = restoration(of_leaders.undone.get(leader, ()), {day: histories.get(day, ())}, cascade=True)
        back_to |= alone.back_to
        undone |= alone.undone
    return Restoration(back_to, undone, of_leaders.in_the_way)


def refusals(undone: Iterable[tuple[str, Version]], today: Version) -> set[Attempt]:
    """Return what must not be published of a day again: what was rolled back, and the same made by today's code.

    Args:
        undone: fingerprint of what a day had been, with by what it was computed as far as that is known.
    """
    return {
        Attempt(fingerprint, version)
        for fingerprint, made_by in undone
        if fingerprint
        for version in (made_by, today)
        if version.code
    }


def back_again(refused: Collection[Attempt], fingerprint: str, made_by: Version) -> set[Attempt]:
    """Return what people refused of a day and it is all the same, with what they refused of the same input.

    Args:
        made_by: by what it was computed, as far as that is known.
    """
    same_input = {attempt for attempt in refused if attempt.fingerprint == fingerprint}
    is_back = any(attempt.made_by == Version() or not any(made_by.differs(attempt.made_by)) for attempt in same_input)
    return same_input if is_back else set()
