"""A server that stands still is ended: who waits for its answer would wait for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging import getLogger
from pathlib import Path
from threading import Event, Thread

from platform_assets.spark.sail.server import SailServer

STANDSTILL_S = 120.0
"""In which a server that is at work takes some processor time, however busy the machine is: one was seen that gave none
to anybody for a minute and more."""
_LEAST_SHARE = 0.01
"""Of a processor. One that stands still takes less, to look how much memory it has."""

_log = getLogger(__name__)


@contextmanager
def ended_at_standstill(server: SailServer, standstill_s: float = STANDSTILL_S) -> Iterator[None]:
    """As long as this is open, the server is killed once it took hardly any processor time for a while.

    Whoever waits for its answer then hears that it is gone.
    """
    done = Event()
    watch = Thread(target=_watch, args=(server, standstill_s, done), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(server: SailServer, standstill_s: float, done: Event) -> None:
    ticks, since = _ticks(server), time.monotonic()
    while not done.wait(standstill_s / 20):
        now = _ticks(server)
        if now - ticks >= 100 * standstill_s * _LEAST_SHARE:
            ticks, since = now, time.monotonic()
        elif time.monotonic() - since > standstill_s:
            _log.warning("Sail took hardly any processor time for %d s and was ended.", standstill_s)
            server.process.kill()
            return


def _ticks(server: SailServer) -> int:
    """Processor time that it took, in hundredths of a second."""
    with suppress(OSError, ValueError):
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0
