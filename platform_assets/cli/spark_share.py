"""How far Spark is with a batch, by the tasks of its running jobs: pure arithmetic, since it knows no jobs to come."""

from __future__ import annotations

from collections.abc import Mapping

_HALF = 6.0
"""Jobs after which a batch counts as half done: about as many as staging and checking days takes."""


class SparkShare:
    """Keeps what was seen of Spark's jobs since a batch began.

    Nobody can say how many jobs a batch takes, but each that ends brings it nearer: so the share always grows, by
    every task, and reaches the whole never.
    """

    def __init__(self) -> None:
        self._newest = self._before = -1
        self._running: Mapping[int, tuple[int, int]] = {}
        self._share = 0.0

    def begin(self) -> None:
        """Another batch begins; jobs up to now are none of its."""
        self._before, self._share = self._newest, 0.0

    def see(self, running: Mapping[int, tuple[int, int]]) -> None:
        """What runs now.

        Args:
            running: tasks that are done, and all, of each running job by its number.
        """
        if self._newest < 0 and running:
            self._before = min(running) - 1  # in a JVM that was kept ready, there were jobs of others
        self._newest = max([self._newest, *running])
        self._running = running
        mine = {number: tasks for number, tasks in running.items() if number > self._before}
        over = self._newest - self._before - len(mine)
        jobs = over + sum(done / tasks for done, tasks in mine.values() if tasks)
        self._share = max(self._share, jobs / (jobs + _HALF))

    @property
    def share(self) -> float:
        """Of the batch, from 0 to below 1."""
        return self._share

    @property
    def words(self) -> str:
        """How far it is with what it is at; empty where it is idle."""
        done, tasks = (sum(counts) for counts in zip(*self._running.values(), strict=True)) if self._running else (0, 0)
        return f"Spark at {done:,} of {tasks:,} tasks" if tasks else ""
