"""Whether a socket has room in the folder for temporary files: its whole path may have about a hundred bytes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

_LONGEST = 103 if sys.platform == "darwin" else 107
USE_A_SHORTER = "Name a shorter one with the variable TMPDIR, as /tmp."
"""What to do then."""


def why_no_socket(below: str) -> str:
    """What keeps a socket from being made there; empty if nothing does.

    Args:
        below: its path in that folder, as long as it will be.
    """
    folder = Path(tempfile.gettempdir())
    if len(os.fsencode(folder / below)) <= _LONGEST:
        return ""
    return f"the folder for temporary files has too long a path for sockets: {folder}"
