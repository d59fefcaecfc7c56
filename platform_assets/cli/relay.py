"""What processes write, passed on to standard error as long as it is of use to whoever looks there."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

_STANDARD_ERROR = 2
_AT_ONCE = 1 << 16
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_BEGUN = re.compile(rb"\x1b(\[[0-9;]*)?\Z")
"""The beginning of a colour, of which the rest has not come yet."""


class Relay:
    """Passes on what is written into its pipe; once hushed, into a file.

    Dagster's processes, and the runs that they started, end with traces when they are asked to stop. These tell nothing
    to whoever has just asked for it, and are kept for whoever looks for something else.

    Dagster colours its lines wherever they lead, so colours that are not wanted are taken out here.

    Args:
        file: for what is written once it is hushed; made anew then.
        coloured: whether standard error shows colours; the file never has any.
    """

    def __init__(self, file: Path, *, coloured: bool) -> None:
        read, self.pipe = os.pipe()
        self._file = file
        self._coloured = coloured
        self._hushed = Event()
        Thread(target=self._run, args=(read,), name="relay", daemon=True).start()

    def hush(self) -> None:
        """Pass nothing more on to standard error."""
        with suppress(OSError):  # of a disk that is full, which is no reason not to stop
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(b"")
        self._hushed.set()

    def _run(self, read: int) -> None:
        begun = b""
        while more := os.read(read, _AT_ONCE):
            text = begun + more
            if cut := _BEGUN.search(text):
                text = text[: cut.start()]
            begun = cut[0] if cut else b""
            # Whatever becomes of it, the pipe is read: who writes into a full one would stand still.
            with suppress(OSError):
                if self._hushed.is_set():
                    with self._file.open("ab") as file:
                        file.write(_COLOUR.sub(b"", text))
                else:
                    os.write(_STANDARD_ERROR, text if self._coloured else _COLOUR.sub(b"", text))
