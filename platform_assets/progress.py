"""Report the progress of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Progress of some work.

    Args:
        phase: current work, as in `computing`, or `starting Spark`.
        table: or another object of the work; empty if the phase says it all.
        total: number of these; 0 if unknown, as for `batch`.
        batch: number of these that Spark is computing at once.
        finished: whether this is the last report on it.
    """

    phase: str
    table: str = ""
    done: int = 0
    total: int = 0
    unit: str = "day"
    batch: int = 0
    rows: int | None = None
    finished: bool = False


OnProgress = Callable[[Progress], None]
"""Announced when work on a table begins, around every batch, and when it is finished."""


def no_progress(now: Progress) -> None:
    """Show nothing."""


@contextmanager
def meanwhile(progress: OnProgress, phase: str) -> Iterator[None]:
    """Report a phase of other work, during the work on a table or outside of any."""
    progress(Progress(phase))
    try:
        yield
    finally:
        progress(Progress(phase, finished=True))
