"""What there is to say about a command that takes its time, and when: no terminal, no thread, and any clock.

How far Spark is with a batch, by the tasks of its running jobs: pure arithmetic, since it knows no jobs to come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from platform_assets.progress import Progress
from platform_assets.visible import visible
from platform_assets.words import counted

QUICK_S = 2.0
"""What is done by then leaves no line behind on its way."""

FIRST_S = 5.0
"""Nobody has heard anything since the process began, which was a few imports ago."""

SILENCE_S = 8.0
"""Ten seconds are promised, and on a busy machine a thread wakes up late."""

_HALF = 6.0
"""Jobs after which a batch counts as half done: about as many as staging and checking days takes."""


@dataclass(frozen=True)
class Now:
    """What is being done at a moment.

    Args:
        doing: in words.
        work: on what, where it is known how far it is.
        seconds: since it began.
        spark: how far Spark is with what it is at, in words; empty where it is idle.
        share: of the batch that is being done, as far as Spark's jobs tell.
    """

    doing: str
    work: Progress | None
    seconds: float
    spark: str = ""
    share: float = 0.0

    @property
    def count(self) -> str:
        """How far it is; empty where nobody can say."""
        known = self.work is not None and bool(self.work.total)
        done = f"{self.work.done:,} of {counted(self.work.total, self.work.unit)}" if self.work and known else ""
        return ", ".join(filter(None, [done, self.spark]))

    @property
    def reached(self) -> float:
        """What a bar shows of the total: all that is done, and what Spark has done of the batch."""
        return self.work.done + self.work.batch * self.share if self.work else 0.0

    def __str__(self) -> str:
        far = f": {self.count}" if self.count else ""
        return f"{self.doing}{far}, {self.seconds:,.0f} s"


class Narration:
    """Keeps what is done and what is to be said of it.

    Args:
        command: that runs, in words; said while nothing better is known.
        clock: in seconds.
    """

    def __init__(self, command: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spoke = clock() - (SILENCE_S - FIRST_S)
        self._labels = [(command, clock())]
        self._meanwhile: dict[str, float] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._work: Progress | None = None
        self._spark = SparkShare()
        self._moved = -math.inf
        self._lines: list[str] = []

    @property
    def is_quick(self) -> bool:
        """Whether what was begun last may yet be over before anybody wonders."""
        return self._clock() - self._labels[-1][1] < QUICK_S

    def begin(self, label: str) -> None:
        """A part of the command begins."""
        self._labels.append((label, self._clock()))

    def end(self) -> None:
        """That part is over, whatever it did last."""
        self._labels.pop()
        self._work = None
        self._lines.clear()
        self._meanwhile.clear()
        self._since.clear()

    def see(self, running: Mapping[int, tuple[int, int]]) -> None:
        """What Spark is at, by the numbers of its jobs: tasks that are done, and all."""
        self._spark.see(running)

    def tell(self, now: Progress) -> None:
        """What the work says of itself."""
        now = replace(now, phase=visible(now.phase), table=visible(now.table))
        moment, key = self._clock(), (now.phase, now.table)
        if not now.table:
            if now.finished:
                self._is_over(self._meanwhile.pop(now.phase, moment), moment)
            else:
                self._meanwhile.setdefault(now.phase, moment)
        elif now.finished:
            began = self._since.pop(key, None)
            self._lines.append(_line(now, None if began is None else moment - began))
            self._work = None
        else:
            if key != self._key and not now.done:
                self._since[key] = moment  # begun anew, whatever became of it before
                self._moved = -math.inf
            self._since.setdefault(key, moment)
            if key != self._key or now.done != (self._work and self._work.done):
                self._spark.begin()
            self._work = now
            if now.done:
                self._moved = moment

    @property
    def _key(self) -> tuple[str, str] | None:
        return (self._work.phase, self._work.table) if self._work else None

    def _waits(self, began: float) -> bool:
        """Whether the work on a table has not come any further since something else began."""
        return self._work is None or self._moved <= began

    def _is_over(self, began: float, moment: float) -> None:
        """What the work on a table had to wait for, such as Spark's start, is none of its time."""
        if self._key and self._waits(began):
            self._since[self._key] += moment - max(began, self._since[self._key])

    def now(self) -> Now:
        """What is being done: what everything else waits for, else the table, else the command."""
        moment = self._clock()
        doing, since = next(reversed(self._meanwhile.items()), ("", 0.0))
        if doing and self._waits(since):
            return Now(doing, None, moment - since)
        if self._work and self._key:
            since = self._since[self._key]
            return Now(" ".join(self._key), self._work, moment - since, self._spark.words, self._spark.share)
        label, since = self._labels[-1]
        return Now(label, None, moment - since, self._spark.words)

    def lines(self) -> list[str]:
        """A line for each table that was finished, once; none as long as the command is quick."""
        if self.is_quick or not self._lines:
            return []
        said, self._lines = self._lines, []
        self._spoke = self._clock()
        return said

    def sign_of_life(self) -> str | None:
        """What is being done, where nothing was said for so long that somebody may wonder."""
        if self._clock() - self._spoke < SILENCE_S:
            return None
        self._spoke = self._clock()
        return str(self.now())


def _line(now: Progress, seconds: float | None) -> str:
    parts = [
        counted(now.done, now.unit) if now.total else "",
        counted(now.rows, "row") if now.rows is not None else "",
        f"{seconds:,.1f} s" if seconds is not None else "",
    ]
    return f"{now.table}: {', '.join(filter(None, parts))}"


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
