"""Ctrl-C: that it arrives wherever it comes, and how it is told from a failure."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_OUT_OF_IT_S = 0.05
"""How long after what could not be interrupted; raised at once, it would be in the very report."""


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
