"""What processes write, passed on to standard error as long as it is of use to whoever looks there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

_STANDARD_ERROR = 2
_AT_ONCE = 1 << 16


class Relay:
    """Passes on what is written into its pipe; once hushed, into a file.

    Dagster's processes, and the runs that they started, end with traces when they are asked to stop. These tell nothing
    to whoever has just asked for it, and are kept for whoever looks for something else.

    Args:
        file: for what is written once it is hushed; made anew then.
    """

    def __init__(self, file: Path) -> None:
        read, self.pipe = os.pipe()
        self._file = file
        self._hushed = Event()
        Thread(target=self._run, args=(read,), name="relay", daemon=True).start()

    def hush(self) -> None:
        """Pass nothing more on to standard error."""
        with suppress(OSError):  # of a disk that is full, which is no reason not to stop
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(b"")
        self._hushed.set()

    def _run(self, read: int) -> None:
        while text := os.read(read, _AT_ONCE):
            # Whatever becomes of it, the pipe is read: who writes into a full one would stand still.
            with suppress(OSError):
                if self._hushed.is_set():
                    with self._file.open("ab") as file:
                        file.write(text)
                else:
                    os.write(_STANDARD_ERROR, text)
