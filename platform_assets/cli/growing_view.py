"""Files that are not taken yet because they may still grow, as people read of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from platform_assets.cli.console import alike
from platform_assets.sources.landing import Problem
from platform_assets.words import counted


def growing_lines(growing: Sequence[Problem]) -> Iterator[str]:
    """One line for all files that only have to rest, with the time it takes; and one for all that wait for the same."""
    resting = [problem for problem in growing if problem.rests_in_s is not None]
    if resting:
        wait_s = max(1, math.ceil(max(problem.rests_in_s or 0.0 for problem in resting)))
        more, them = (f" and {counted(len(resting) - 1, 'other file')}", "them") if len(resting) > 1 else ("", "it")
        yield (
            f"{resting[0].path}{more} changed a moment ago and may still grow: a refresh takes {them} in {wait_s} s if "
            f"nobody writes to {them} any more"
        )
    yield from alike((problem.path, problem.message) for problem in growing if problem.rests_in_s is None)
