"""In which time zone a user's code describes rows: a moment without one that it names is one in UTC, on every machine.

PySpark takes `datetime(2017, 1, 1)` for local time of the process that says it, whatever the session's time zone is: a
day would come out otherwise on a laptop than on a server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

_ZONE, _UTC = "TZ", "UTC"
_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass
class _Within:
    """How many are in UTC now, of whatever thread, and what the process had before the first came."""

    lock: Lock
    count: int = 0
    before: str | None = None


_WITHIN = _Within(Lock())


def described_in_utc(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function of a user's, which finds this process in UTC whenever it is called."""

    @wraps(function)
    def described(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with in_utc():
            return function(*args, **kwargs)

    return described


@contextmanager
def in_utc() -> Iterator[None]:
    """As long as this is open, local time of this process is UTC; afterwards it is what it was."""
    with _WITHIN.lock:
        if not _WITHIN.count:
            _WITHIN.before = os.environ.get(_ZONE)
            _set(_UTC)
        _WITHIN.count += 1
    try:
        yield
    finally:
        with _WITHIN.lock:
            _WITHIN.count -= 1
            if not _WITHIN.count:
                _set(_WITHIN.before)


def _set(zone: str | None) -> None:
    if zone is None:
        os.environ.pop(_ZONE, None)
    else:
        os.environ[_ZONE] = zone
    time.tzset()
