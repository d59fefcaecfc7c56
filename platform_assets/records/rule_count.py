"""How many rows of a day a rule judged, and how many broke it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RuleCount(NamedTuple):
    """Rows of one day.

    Args:
        broken: of those that were judged.
        judged: that the rule's filter let through.
    """

    broken: int = 0
    judged: int = 0


RuleCounts = Mapping[str, RuleCount]
"""By the name of the rule."""
