"""Report the progress of a long command: a bar on a terminal, plain lines elsewhere.

All of it goes to the command's original standard error. Dagster redirects both standard streams into files while a step
runs; a bar in these would not move on the terminal.
"""

from __future__ import annotations

import io
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Timer, main_thread
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from platform_assets.progress import OnProgress, Progress
from platform_assets.words import counted, visible

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

QUICK_S = 2.0
"""Work that is done by then leaves no progress line."""

FIRST_S = 5.0
"""First sign of life: the command has printed nothing since the process began."""

SILENCE_S = 8.0
"""Ten seconds are promised, and on a busy machine a thread wakes up late."""

_HALF = 6.0
"""Jobs after which a batch counts as half done: about as many as staging and checking days takes."""
_TICK_S = 0.2
_LAST_WORDS_S = 5.0
"""Longest wait for an answer of Spark, in seconds."""
_ASKED_EVERY_S = 1.0

_OUT_OF_IT_S = 0.05
"""How long after what could not be interrupted; raised at once, it would be in the very report."""


@dataclass(frozen=True)
class Now:
    """The current work, and its duration in seconds.

    Args:
        work: its progress, if known.
        spark: progress of Spark's jobs, in words; empty if idle.
        share: of the current batch, by Spark's jobs.
    """

    doing: str
    work: Progress | None
    seconds: float
    spark: str = ""
    share: float = 0.0

    @property
    def count(self) -> str:
        """Return the progress as a count; empty if unknown."""
        known = self.work is not None and bool(self.work.total)
        done = f"{self.work.done:,} of {counted(self.work.total, self.work.unit)}" if self.work and known else ""
        return ", ".join(filter(None, [done, self.spark]))

    @property
    def reached(self) -> float:
        """Return how much of the total a bar shows: all that is done, and Spark's share of the batch."""
        return self.work.done + self.work.batch * self.share if self.work else 0.0

    def __str__(self) -> str:
        far = f": {self.count}" if self.count else ""
        return f"{self.doing}{far}, {self.seconds:,.0f} s"


class Narration:
    """State of the work and its messages, without a terminal or thread, and with any clock.

    Args:
        command: shown while nothing better is known.
        clock: in seconds.
    """

    def __init__(self, command: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spoke = clock() - (SILENCE_S - FIRST_S)
        self._labels = [(command, clock())]
        self._meanwhile: dict[str, float] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._work: Progress | None = None
        self.spark = SparkShare()
        self._moved = -math.inf
        self._lines: list[str] = []

    @property
    def is_quick(self) -> bool:
        """Return whether the newest part may end before it needs a progress line."""
        return self._clock() - self._labels[-1][1] < QUICK_S

    def begin(self, label: str) -> None:
        """Note that a part of the command begins."""
        self._labels.append((label, self._clock()))

    def end(self) -> None:
        """End the current part."""
        self._labels.pop()
        self._work = None
        self._lines.clear()
        self._meanwhile.clear()
        self._since.clear()

    def tell(self, now: Progress) -> None:
        """Take a progress report of the work."""
        now = replace(now, phase=visible(now.phase), table=visible(now.table))
        moment, key = self._clock(), (now.phase, now.table)
        if not now.table:
            if now.finished:
                began = self._meanwhile.pop(now.phase, moment)
                if self._key and self._waits(began):  # Spark's start does not count as a table's time
                    self._since[self._key] += moment - max(began, self._since[self._key])
            else:
                self._meanwhile.setdefault(now.phase, moment)
        elif now.finished:
            started = self._since.pop(key, None)
            parts = [
                counted(now.done, now.unit) if now.total else "",
                counted(now.rows, "row") if now.rows is not None else "",
                f"{moment - started:,.1f} s" if started is not None else "",
            ]
            self._lines.append(f"{now.table}: {', '.join(filter(None, parts))}")
            self._work = None
        else:
            if key != self._key and not now.done:
                self._since[key] = moment  # begun again
                self._moved = -math.inf
            self._since.setdefault(key, moment)
            if key != self._key or now.done != (self._work and self._work.done):
                self.spark.begin()
            self._work = now
            if now.done:
                self._moved = moment

    @property
    def _key(self) -> tuple[str, str] | None:
        return (self._work.phase, self._work.table) if self._work else None

    def _waits(self, began: float) -> bool:
        return self._work is None or self._moved <= began

    def now(self) -> Now:
        """Return the current work: what everything waits for, else the table, else the command."""
        moment = self._clock()
        doing, since = next(reversed(self._meanwhile.items()), ("", 0.0))
        if doing and self._waits(since):
            return Now(doing, None, moment - since)
        if self._work and self._key:
            since = self._since[self._key]
            return Now(" ".join(self._key), self._work, moment - since, self.spark.words, self.spark.share)
        label, since = self._labels[-1]
        return Now(label, None, moment - since, self.spark.words)

    def lines(self) -> list[str]:
        """Return a line for each newly finished table; none while the command is quick."""
        if self.is_quick or not self._lines:
            return []
        said, self._lines = self._lines, []
        self._spoke = self._clock()
        return said

    def sign_of_life(self) -> str | None:
        """Return a sign of life, if nothing was printed for a while."""
        if self._clock() - self._spoke < SILENCE_S:
            return None
        self._spoke = self._clock()
        return str(self.now())


class SparkShare:
    """Progress of Spark's jobs since a batch began.

    The number of jobs of a batch is unknown, but each finished one brings its end nearer. So the share grows with every
    task and never reaches 1.
    """

    def __init__(self) -> None:
        self._newest = self._before = -1
        self._running: Mapping[int, tuple[int, int]] = {}
        self.share = 0.0

    def begin(self) -> None:
        """Begin another batch. Earlier jobs do not belong to it."""
        self._before, self.share = self._newest, 0.0

    def see(self, running: Mapping[int, tuple[int, int]]) -> None:
        """Take the finished and total tasks of each running job, by job number."""
        if self._newest < 0 and running:
            self._before = min(running) - 1  # in a JVM that was kept ready, there were jobs of others
        self._newest = max([self._newest, *running])
        self._running = running
        mine = {number: tasks for number, tasks in running.items() if number > self._before}
        over = self._newest - self._before - len(mine)
        jobs = over + sum(done / tasks for done, tasks in mine.values() if tasks)
        self.share = max(self.share, jobs / (jobs + _HALF))

    @property
    def words(self) -> str:
        """Describe Spark's current progress; empty if it is idle."""
        done, tasks = (sum(counts) for counts in zip(*self._running.values(), strict=True)) if self._running else (0, 0)
        return f"Spark at {done:,} of {tasks:,} tasks" if tasks else ""


class Bar:
    """A bar on a terminal that can be redrawn and removed."""

    def __init__(self, out: TextIO) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars
        from rich.table import Column

        self._out = out
        self._console = Console(file=out, emoji=False)
        self._is_shown = False
        # Text too wide for the terminal is cut: a line that wraps could not be drawn over.
        cut, whole = Column(no_wrap=True, overflow="ellipsis"), Column(no_wrap=True)
        self._bars = Bars(
            TextColumn("{task.description}", markup=False, table_column=cut),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[count]}", markup=False, table_column=whole),
            TextColumn("{task.fields[seconds]}", markup=False, table_column=whole),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bars.add_task("", total=None, count="", seconds="")

    def print(self, lines: Iterable[str]) -> None:
        """Print lines that stay, above the bar."""
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def draw(self, now: Now) -> None:
        """Show the current work."""
        done, total = (now.reached, now.work.total) if now.work and now.work.total else (0, None)
        seconds, count = f"{now.seconds:,.0f} s", now.count
        self._bars.update(self._task, description=now.doing, completed=done, total=total, count=count, seconds=seconds)
        # Rich would ask the standard streams, which may lead elsewhere by now.
        columns, lines = os.get_terminal_size(self._out.fileno())
        self._console.size = (columns or 80, lines or 25)
        if not self._is_shown:
            self._is_shown = True
            self._bars.start()
            # Rich hides the cursor, and a killed process would leave the terminal without one.
            self._console.show_cursor()
        self._bars.refresh()

    def remove(self) -> None:
        """Leave the terminal as if there had never been a bar."""
        if self._is_shown:
            self._bars.stop()


class Voice:
    """Report progress from a thread of its own; without standard error it is silent.

    On a terminal only while the command reports progress; elsewhere also whenever it takes long.
    """

    def __init__(self, command: str, out: TextIO | None) -> None:
        self._out = out
        self._is_terminal = out is not None and out.isatty() and os.environ.get("TERM") != "dumb"
        self._narration = Narration(command)
        self._bar: Bar | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        if out is not None:
            self._thread.start()

    @contextmanager
    def telling(self, label: str) -> Iterator[OnProgress]:
        """Show the progress of a part of the command that prints nothing until its end."""
        with self._lock:
            self._narration.begin(label)
            if self._is_terminal and self._out:
                self._bar = Bar(self._out)
                self._say_or_leave_it(self._words)
        try:
            yield self._tell
        finally:
            with self._lock:
                self._say_or_leave_it(self._last_words)
                self._narration.end()
                self._bar = None

    def hush(self) -> None:
        """Say nothing more: the command is over, or runs until its user stops it."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_WORDS_S)

    def _tell(self, now: Progress) -> None:
        with self._lock:
            self._narration.tell(now)

    def _run(self) -> None:
        asked = 0.0
        while not self._over.wait(_TICK_S):
            if time.monotonic() - asked >= _ASKED_EVERY_S:
                running = _running_jobs()  # without the lock, so that the work does not wait for Spark's answer
                asked = time.monotonic()
                with self._lock:
                    self._narration.spark.see(running)
            with self._lock:
                self._say_or_leave_it(self._words)

    def _say_or_leave_it(self, words: Callable[[], None]) -> None:
        if self._over.is_set():
            return
        try:
            words()
        except (OSError, ValueError):
            self._over.set()  # the terminal is gone, which is no reason to stop working

    def _words(self) -> None:
        if self._bar:
            self._bar.draw(self._narration.now())
            self._bar.print(self._narration.lines())
        elif not self._is_terminal:
            self._print(self._narration.lines())
            if life := self._narration.sign_of_life():
                self._print([life])

    def _last_words(self) -> None:
        if self._bar:
            self._bar.remove()
            self._bar.print(self._narration.lines())
        else:
            self._print(self._narration.lines())

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line, file=self._out, flush=True)


_VOICE: ContextVar[Voice] = ContextVar("voice")


@contextmanager
def speaking(command: str) -> Iterator[Voice]:
    """Report the progress of one command; silent when the command is over."""
    out = _own_stderr()
    voice = Voice(command, out)
    token = _VOICE.set(voice)
    try:
        yield voice
    finally:
        _VOICE.reset(token)
        voice.hush()
        if out is not None:
            with suppress(OSError):  # the terminal is gone
                out.close()


@contextmanager
def telling(label: str) -> Iterator[OnProgress]:
    """Show the progress of a part of the command; report a failure caused by an interruption as interruption."""
    try:
        with _VOICE.get().telling(label) as progress:
            yield progress
    except BaseException as error:
        if not is_interruption(error):
            raise
        raise KeyboardInterrupt from error


def hush() -> None:
    """Say nothing more, for commands that run until they are stopped."""
    _VOICE.get().hush()


def _running_jobs() -> Mapping[int, tuple[int, int]]:
    ask = getattr(sys.modules.get("platform_assets.spark.session.on_demand"), "running_jobs", None)
    return ask() if ask else {}


def _own_stderr() -> TextIO | None:
    """Return standard error under a separate descriptor, which is never redirected or inherited by a child."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8", errors="replace")
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


@contextmanager
def never_lost() -> Iterator[None]:
    """Raise an interruption again that Python could only print.

    If the signal comes in a finalizer or in the callback of a weak reference, which every import runs, the exception
    cannot be caught: Python would print it and continue.
    """
    before = sys.unraisablehook

    def hook(unraisable: UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            Timer(_OUT_OF_IT_S, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def is_interruption(error: BaseException | None) -> bool:
    """Return whether this is an interruption, or happened during one: cleaning up may then find the JVM gone."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
