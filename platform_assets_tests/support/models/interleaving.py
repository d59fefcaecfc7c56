"""Several publishers of one lake, of which one goes on at a time: from one point of the code to the next, as drawn.

Each is a thread. At every point at which a process could be killed it stops, and whoever is drawn goes on. Locks are
given in the same way, and can be lost: then two work at once who each believe to be alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

LOSES_ITS_LOCK, DIES = 0.02, 0.01
"""How likely it is at each step that whoever has the lock loses it, or that somebody dies."""


class Died(BaseException):
    """Stands for the end of a process: nothing catches it."""


class Turns:
    """Who goes on.

    Args:
        random: draws.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._going = threading.Semaphore(0)
        self._theirs: dict[threading.Thread, threading.Semaphore] = {}
        self._wait: set[threading.Thread] = set()
        self._lock: threading.Thread | None = None
        self.failed: list[Exception] = []
        self.locks_lost = 0
        self.died = 0

    def play(self, actors: list[Callable[[], None]]) -> None:
        """Until all are done."""
        for actor in actors:
            thread = threading.Thread(target=self._act, args=(actor,), daemon=True)
            self._theirs[thread] = threading.Semaphore(0)
            thread.start()
        while self._theirs:
            if self._lock and self._random.random() < LOSES_ITS_LOCK:
                self._lock = None
                self.locks_lost += 1
            can = [thread for thread in self._theirs if self._lock is None or thread not in self._wait]
            self._theirs[self._random.choice(can)].release()
            self._going.acquire()

    def pause(self, _: str = "") -> None:
        """A point of the code: others may go on before this one does, and it may die here."""
        self._stop()
        if self._random.random() < DIES:
            raise Died

    @contextmanager
    def lock(self, *_: object) -> Iterator[Callable[[], None]]:
        """The only one, as far as its holder knows."""
        me = threading.current_thread()
        self._wait.add(me)
        while self._lock is not None:
            self._stop()
        self._wait.discard(me)
        self._lock = me
        try:
            yield lambda: None
        finally:
            if self._lock is me:
                self._lock = None

    def _act(self, actor: Callable[[], None]) -> None:
        me = threading.current_thread()
        self._theirs[me].acquire()
        try:
            actor()
        except Died:
            self.died += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that plays
            self.failed.append(error)
        finally:
            del self._theirs[me]
            self._going.release()

    def _stop(self) -> None:
        if mine := self._theirs.get(threading.current_thread()):
            self._going.release()
            mine.acquire()
