"""What a person has accepted of staged days: what was looked at, and what was published so before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import cast

from platform_assets.engine.state.readiness import Readiness
from platform_assets.engine.step.staging import Staged
from platform_assets.quality.findings import Check, accepted_by_hand


def accepted_checks(
    state: Readiness, staged: Staged, accept: Collection[Check], looked_at: Mapping[date, str]
) -> dict[date, frozenset[Check]]:
    """The checks whose findings count no more, by day.

    What somebody accepted stays so where the same rows come of the same input: the day was computed again by force, or
    by other code, and to hold it would serve nobody.

    Args:
        state: of the staged days.
        staged: as they lie in the stage.
        accept: checks that somebody accepts now.
        looked_at: the fingerprint of each day at which this person has looked.
    """
    accepted: dict[date, frozenset[Check]] = {}
    for day in state.ready:
        now = accept if looked_at.get(day) == state.made_from[day] else ()
        accepted[day] = frozenset({*now, *_before(state, staged, day)})
    return accepted


def _before(state: Readiness, staged: Staged, day: date) -> set[Check]:
    there = state.before.get(day)
    is_same = there and (there.fingerprint, there.digest) == (state.made_from[day], str(staged.digest(day)))
    if there is None or not is_same:
        return set()
    return {cast("Check", name) for name in accepted_by_hand(there.figures)}
