"""The points at which a test can kill a process, as the product's code names them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import platform_assets

_NAMED = re.compile(r"""\bfailpoint\("((\w+)\.\w+)"\)""")


def _found() -> dict[str, tuple[str, ...]]:
    points: defaultdict[str, list[str]] = defaultdict(list)
    for module in sorted(Path(platform_assets.__file__).parent.rglob("*.py")):
        for name, phase in _NAMED.findall(module.read_text(encoding="utf-8")):
            points[phase].append(name)
    twice = [name for name, times in Counter(name for each in points.values() for name in each).items() if times > 1]
    assert not twice, f"a point is passed in one place alone: {twice}"
    return {phase: tuple(points[phase]) for phase in sorted(points)}


POINTS = _found()
"""Every point by the phase of the work it lies in."""
