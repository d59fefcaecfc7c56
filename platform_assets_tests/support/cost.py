"""Measure what a call costs, in a process that has no other threads.

tracemalloc must not be stopped while threads of libraries allocate: CPython before 3.12.9 and 3.13.2 can end with a
segmentation fault (its issue 128679).
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import NamedTuple, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Cost(NamedTuple):
    """The most bytes that Python had at once, and seconds of processors; both without processes that it started."""

    memory: int
    seconds: float


def cost_of(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_T, Cost]:
    """Call a function of a module in another process; return its result and what it cost."""
    return _process().submit(_traced, partial(work, *args, **kwargs)).result()


@cache
def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))


def _traced(work: Callable[[], _T]) -> tuple[_T, Cost]:
    started = time.process_time()
    tracemalloc.start()
    try:
        result = work()
        return result, Cost(tracemalloc.get_traced_memory()[1], time.process_time() - started)
    finally:
        tracemalloc.stop()
