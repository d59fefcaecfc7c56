"""What is left of a planned step once the steps before it are done."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

from platform_assets.planning.day_states import (
    Blocked,
    DayState,
    Held,
    Missing,
    Stale,
    UpToDate,
)
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import (
    Reason,
    Reasons,
)
from platform_assets.planning.selection import Request

_BY_VERSION: frozenset[Reason] = frozenset({"code", "configuration"})


class LeftToDo(NamedTuple):
    """What is left of a planned step once the steps before it are done.

    Args:
        days: that still need work, or cannot be computed after all, which the step then says.
        struck: what they read came out as it was.
    """

    days: tuple[date, ...]
    struck: tuple[date, ...]


def left_to_do(step: PlannedStep, states: Mapping[date, DayState], request: Request) -> LeftToDo:
    """What is left of a planned step once the steps before it are done.

    Args:
        step: as it was planned.
        states: of its days, now.
        request: that was planned.
    """
    days: list[date] = []
    struck: list[date] = []
    for day, reasons in step.reasons.items():
        state = states[day]
        if "asked for" in reasons or _is_due(state, reasons, request):
            days.append(day)
        else:
            struck.append(day)
    return LeftToDo(tuple(days), tuple(struck))


def _is_due(state: DayState, reasons: Reasons, request: Request) -> bool:
    """Whether the step of a planned day is to compute it, or to say what keeps it."""
    match state:
        case UpToDate():
            return False
        case Missing():
            return True
        case Stale():
            return state.by_data or request.by_person
        case Held():  # reached, and its input came out as it was refused: nothing new; else it was refused since
            return not _BY_VERSION.isdisjoint(reasons)
        case Blocked(is_there=False):
            return True
        case Blocked():
            return state.otherwise is not None and (state.otherwise.by_data or request.by_person)
