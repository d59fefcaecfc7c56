"""Files of a landing area: written whole, and the note that says which sample lies there."""

from __future__ import annotations

import os
from pathlib import Path

STATE = ".simulation.json"


def write(file: Path, content: bytes, modified_s: float | None = None) -> None:
    """Under a hidden name first, so that nobody ever sees half a file.

    Args:
        file: to write or replace.
        content: of it.
        modified_s: when it was last changed, in seconds since 1970; now by default.
    """
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    if modified_s is not None:
        os.utime(unfinished, (modified_s, modified_s))
    unfinished.replace(file)
