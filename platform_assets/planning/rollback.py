"""Rolling back, decided: what days were before some publications, and what stands in the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

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
    """What days were before the oldest of some publications that made something of them.

    Args:
        chosen: publications to roll back.
        histories: of every day that one of them published, all publications that did, newest first.
        compactions: publications that left the content as it was, which go with what they compacted.
        cascade: whether what later publications made of these days goes too.
    """
    back_to: dict[TableDay, str] = {}
    undone: dict[TableDay, tuple[str, ...]] = {}
    in_the_way: dict[TableDay, str] = {}
    for day, history in histories.items():
        oldest = max((place for place, one in enumerate(history) if one in chosen), default=None)
        if oldest is None:
            continue
        goes = tuple(history[: oldest + 1])
        later = [one for one in goes if one not in chosen and one not in compactions]
        if later and not cascade:
            in_the_way[day] = later[0]
            continue
        back_to[day] = history[oldest + 1] if oldest + 1 < len(history) else NEVER
        undone[day] = goes
    return Restoration(back_to, undone, in_the_way)
