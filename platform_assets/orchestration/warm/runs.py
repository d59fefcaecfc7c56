"""Processes of runs that begin with what every run imports, which takes most of the time until one is at work.

They are copies of a process that has imported it and does nothing else. As long as that has what lies on the disk:
after a change of this package, or of what is installed, processes begin as if nothing were ready.
"""

from __future__ import annotations

import multiprocessing
import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[2]
_IMPORTED = "platform_assets.orchestration.warm.imported"
_UNKNOWN = 255
"""The exit code of a copy whose original has gone, which would have told it."""

State = frozenset[tuple[str, int, int]]
"""Files, with when they were changed and their size."""


class Copy(ForkServerProcess):
    """A process that goes on where its original has gone, and is known to."""

    def is_alive(self) -> bool:
        """Whether it is there."""
        if super().is_alive():
            return True
        if self.exitcode == _UNKNOWN and self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, 0)
                return True
        return False


class ReadyProcesses:
    """Makes processes as `multiprocessing` does, with what they need imported beforehand.

    Args:
        modules: that are imported.
        code: tells how they lie on the disk now.
    """

    def __init__(self, modules: Sequence[str] = (_IMPORTED,), code: Callable[[], State] | None = None) -> None:
        self._code = code or code_on_disk
        self._as_imported = self._code()
        self._anew = multiprocessing.get_context("spawn")
        forkserver.set_forkserver_preload(list(modules))
        forkserver.ensure_running()  # it imports while others do something else
        self.Queue, self.Event = self._anew.Queue, self._anew.Event

    def Process(self, target: Callable[..., object], args: Sequence[Any]) -> BaseProcess:  # noqa: N802 - as there
        """A process that will call a function."""
        kind = Copy if self._code() == self._as_imported else self._anew.Process
        return kind(target=target, args=tuple(args))


def code_on_disk() -> State:
    """This package without the domains, which nobody imports beforehand, and what is installed."""
    return frozenset((str(path), found.st_mtime_ns, found.st_size) for path in _looked_at() for found in [path.stat()])


def _looked_at() -> Iterator[Path]:
    for path in _PACKAGE.rglob("*.py"):
        if path.relative_to(_PACKAGE).parts[0] != "domains":
            yield path
    yield from {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
