"""Pause garbage collection while many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unsearched() -> Iterator[None]:
    """Within it Python does not search all that it has for garbage, which it does again and again while much is made.

    For work of seconds that reads and writes the days of years: to search the libraries that are imported, Spark's and
    pandas' among them, takes longer than the work.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
