"""How a command that takes its time says how far it is: a bar on a terminal, plain lines anywhere else.

All of it goes to where standard error led when the command began. Dagster leads both standard streams into files while
a step runs, and a bar that follows them there stands still for whoever looks at the terminal.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Timer, main_thread
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from platform_assets.cli.narration import Narration, Now
from platform_assets.progress import OnProgress, Progress

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

    from rich.progress import Progress as Bars

_TICK_S = 0.2
_LAST_WORDS_S = 5.0
"""Seconds after which nobody waits for a Spark any more that was asked and does not answer."""
_ASKED_EVERY_S = 1.0
"""Seconds between two questions to Spark, how far it is."""

_OUT_OF_IT_S = 0.05
"""How long after what could not be interrupted; raised at once, it would be in the very report."""


class Bar:
    """A bar that can be shown, drawn anew and taken away again.

    Args:
        out: a terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._console = Console(file=out, emoji=False)
        self._shown: Bars | None = None

    def print(self, lines: Iterable[str]) -> None:
        """Lines that stay, above the bar."""
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def draw(self, now: Now) -> None:
        """Show what is being done."""
        bars = self._shown or _bars(self._console)
        done, total = (now.reached, now.work.total) if now.work and now.work.total else (0, None)
        [task] = bars.task_ids
        seconds = f"{now.seconds:,.0f} s"
        bars.update(task, description=now.doing, completed=done, total=total, count=now.count, seconds=seconds)
        self._console.size = self._size()
        if self._shown is None:
            self._shown = bars
            bars.start()
            # Rich hides it, and whoever kills the process would be left without one.
            self._console.show_cursor()
        bars.refresh()

    def remove(self) -> None:
        """Leave the terminal as if there had never been a bar."""
        if self._shown:
            self._shown.stop()
            self._shown = None

    def _size(self) -> tuple[int, int]:
        """Rich would ask the standard streams, which may lead elsewhere by now."""
        columns, lines = os.get_terminal_size(self._out.fileno())
        return columns or 80, lines or 25


def _bars(console: Console) -> Bars:
    """What is too wide for the terminal is cut: a line that wraps could not be drawn over."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    whole = Column(no_wrap=True)
    bars = Bars(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False, table_column=whole),
        TextColumn("{task.fields[seconds]}", markup=False, table_column=whole),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bars.add_task("", total=None, count="", seconds="")
    return bars


class Voice:
    """Says what a command is doing, from a thread of its own.

    On a terminal, that is only while the command tells how far it is; elsewhere, also whenever it takes long.

    Args:
        command: its name.
        out: where to; nowhere if there is no standard error.
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
        """A part of the command that tells how far it is, and prints nothing meanwhile."""
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
        """Say nothing more: the command is over, or goes on for as long as its user wants."""
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
                running = _running_jobs()  # without the lock: nobody who works waits for an answer
                asked = time.monotonic()
                with self._lock:
                    self._narration.see(running)
            with self._lock:
                self._say_or_leave_it(self._words)

    def _say_or_leave_it(self, words: Callable[[], None]) -> None:
        if self._over.is_set():
            return
        try:
            words()
        except (OSError, ValueError):
            self._over.set()  # nobody listens any more, which is no reason to stop working

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
"""Of the command that runs."""


@contextmanager
def speaking(command: str) -> Iterator[Voice]:
    """A voice for one command, silent when it is over."""
    out = _own_stderr()
    voice = Voice(command, out)
    token = _VOICE.set(voice)
    try:
        yield voice
    finally:
        _VOICE.reset(token)
        voice.hush()
        if out is not None:
            with suppress(OSError):  # of what could not be said because nobody listens any more
                out.close()


@contextmanager
def telling(label: str) -> Iterator[OnProgress]:
    """Show how far something is that the command does; what an interruption makes fail is no failure but that."""
    try:
        with _VOICE.get().telling(label) as progress:
            yield progress
    except BaseException as error:
        if not is_interruption(error):
            raise
        raise KeyboardInterrupt from error


def hush() -> None:
    """For commands that run until they are stopped."""
    _VOICE.get().hush()


def _running_jobs() -> Mapping[int, tuple[int, int]]:
    """Of Spark, if the command has loaded it: nothing that takes long is imported only to look."""
    ask = getattr(sys.modules.get("platform_assets.spark.session.on_demand"), "running_jobs", None)
    return ask() if ask else {}


def _own_stderr() -> TextIO | None:
    """Standard error under a descriptor of its own, which nobody redirects and no child inherits."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8", errors="replace")
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


@contextmanager
def never_lost() -> Iterator[None]:
    """An interruption that Python could only report is raised again.

    Where the signal comes in a finalizer or in a callback of a weak reference, as every import runs one, nobody can
    catch what is raised: Python would print it and go on.
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
    """Whether it is one, or came while one was under way: what tidies up then may find its JVM gone."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
