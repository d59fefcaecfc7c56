"""Several processes at work on one lake, of which one goes on at a time: from one point of the code to the next.

Each is a thread. At every point at which a process could be killed it stops, and whoever is drawn goes on. Locks are
given in the same way, and can be lost: then two work at once who each believe to be alone.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random

import pytest

from platform_assets import failpoints
from platform_assets.lakehouse import locks as lock
from platform_assets.lakehouse.errors import LockTimeoutError
from platform_assets.lakehouse.layout import Lake

LOSES_ITS_LOCK, DIES = 0.02, 0.01
"""How likely it is at each step that somebody loses a lock, or dies."""


IN_A_TRANSACTION = ("ledger.recording", "ledger.holding")
"""Whoever stopped here would keep SQLite from the others, who would wait for it."""


class Died(BaseException):
    """Stands for the end of a process: nothing catches it."""


class Turns:
    """Who goes on.

    Args:
        random: draws.
        dies: how likely somebody dies at each step.
    """

    def __init__(self, random: Random, dies: float = DIES) -> None:
        self._random = random
        self._dies = dies
        self._going = threading.Semaphore(0)
        self._theirs: dict[threading.Thread, threading.Semaphore] = {}
        self._wants: dict[threading.Thread, str] = {}
        self._locks: dict[str, threading.Thread] = {}
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
            if self._locks and self._random.random() < LOSES_ITS_LOCK:
                del self._locks[self._random.choice(sorted(self._locks))]
                self.locks_lost += 1
            can = [thread for thread in self._theirs if self._wants.get(thread) not in self._locks]
            self._theirs[self._random.choice(can)].release()
            self._going.acquire()

    def pause(self) -> None:
        """A point of the code: others may go on before this one does, and it may die here."""
        self._stop()
        if self._random.random() < self._dies:
            raise Died

    @contextmanager
    def lock(self, name: str, *, waits: bool = True) -> Iterator[Callable[[], None]]:
        """Be the only one who has it, as far as its holder knows.

        Raises:
            LockTimeoutError: somebody else has it, and nobody waits.
        """
        me = threading.current_thread()
        while name in self._locks:
            if not waits:
                raise LockTimeoutError(f"{name} is not free.", "Wait.")
            self._wants[me] = name
            self._stop()
        self._wants.pop(me, None)
        self._locks[name] = me
        try:
            yield lambda: None
        finally:
            if self._locks.get(name) is me:
                del self._locks[name]

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


@contextmanager
def taking_turns(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every point of the code at which a process could be killed is one, and every lock is given in turn."""

    class Passed(Counter[str]):
        def __setitem__(self, point: str, times: int) -> None:
            if point not in IN_A_TRANSACTION:
                turns.pause()

    def taken(_: Lake, name: str, timeout_s: float) -> AbstractContextManager[Callable[[], None]]:
        return turns.lock(name, waits=timeout_s > 0)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "PASSED", Passed())
        patch.setattr(lock, "_lock", taken)
        yield
