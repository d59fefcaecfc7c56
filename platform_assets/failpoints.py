"""Name the points at which a test can kill this process, as in a power cut.

It is not for users; it costs a look into the environment.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "PLATFORM_FAILPOINT"
"""Names the point to die at; `point:3` dies when it is passed for the third time."""

PASSED: Counter[str] = Counter()
"""How often this process has passed each point, so that a test knows which can be died at."""


def failpoint(name: str) -> None:
    """Kill this process, without any clean-up, if the environment names this point; else do nothing."""
    PASSED[name] += 1
    if os.environ.get(VARIABLE) in (name, f"{name}:{PASSED[name]}"):
        os.kill(os.getpid(), signal.SIGKILL)
