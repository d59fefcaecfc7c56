"""The code server as `up` starts it where things are kept ready: Dagster's own, whose runs begin with all imported.

python -m platform_assets.orchestration.warm.code_server code-server start …

That is two processes. The first one starts the second by the same command, and anew whenever the definitions are
reloaded; the second loads them and starts the runs.

Processes of runs that begin with what every run imports, which takes most of the time until one is at work.

They are copies of a process that has imported it and does nothing else. As long as that has what lies on the disk:
after a change of this package, or of what is installed, processes begin as if nothing were ready.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, cast

from dagster._cli import main as run_dagster
from dagster._grpc import server


class ReadyServer(server.DagsterApiServer):
    """Dagster's own server of definitions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Only now: runs begin with the environment that the server was given.
        self._mp_ctx: Any = ReadyProcesses()


def main() -> None:
    """Do what Dagster's command line does."""
    dagsters = cast("Any", server)
    dagsters.DagsterApiServer = ReadyServer
    dagsters.get_python_environment_entry_point = _entry_point
    cast("Any", run_dagster)()


def _entry_point(executable: str) -> list[str]:
    """By which command the first process starts the second."""
    return [executable, "-m", "platform_assets.orchestration.warm.code_server"]


if __name__ == "__main__":
    main()


_PACKAGE = Path(__file__).parents[2]
_IMPORTED = "platform_assets.orchestration.warm.imported"
_UNKNOWN = 255
"""The exit code of a copy whose original has gone, which would have told it."""

State = frozenset[tuple[str, int, int]]
"""Files, with when they were changed and their size."""


class Copy(ForkServerProcess):
    """A process that goes on where its original has gone, and is known to."""

    _handle: int | None = None

    def start(self) -> None:
        """Begin, and keep hold of it: its number may be another's one day."""
        super().start()
        if self.pid is not None and sys.platform == "linux":
            with suppress(OSError):
                self._handle = os.pidfd_open(self.pid)
                Finalize(self, os.close, args=(self._handle,))

    def is_alive(self) -> bool:
        """Whether it is at work; one that has ended is not, though nobody may have asked how."""
        if super().is_alive():
            return True
        if self.exitcode != _UNKNOWN or self.pid is None:
            return False
        if self._handle is not None:
            return not wait([self._handle], timeout=0)
        try:
            os.kill(self.pid, 0)
        except OSError:  # its number is nobody's, or another user's
            return False
        return True


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
        if self._code() == self._as_imported:
            return Copy(target=_to_the_end, args=(dict(os.environ), target, *args))
        return self._anew.Process(target=target, args=tuple(args))


def _to_the_end(environment: dict[str, str], target: Callable[..., object], *args: Any) -> None:
    """Call a function in the environment of whoever asked, which may have changed since the original began.

    What was to be done at the end of the process is done after it; copies leave that out.
    """
    if environment != dict(os.environ):
        os.environ.clear()
        os.environ.update(environment)
    try:
        target(*args)
    finally:
        cast("Any", atexit)._run_exitfuncs()


def code_on_disk() -> State:
    """This package without the domains, which nobody imports beforehand, and what is installed."""
    state: set[tuple[str, int, int]] = set()
    for path in _looked_at():
        with suppress(FileNotFoundError):  # removed just now, or a link to nothing, as Emacs marks what is being edited
            found = path.stat()
            state.add((str(path), found.st_mtime_ns, found.st_size))
    return frozenset(state)


def _looked_at() -> Iterator[Path]:
    for path in _PACKAGE.rglob("*.py"):
        if path.relative_to(_PACKAGE).parts[0] != "domains":
            yield path
    yield from {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
