"""Start Dagster's own daemon and code server, for `up`.

python -m platform_assets.orchestration.servers daemon run …
python -m platform_assets.orchestration.servers code-server start …

The daemon leaves it to the code server to say why it cannot load: each sensor would log the same with a trace, as often
as it is asked while the definitions cannot be loaded.

Runs of the code server begin with all imported: copies of a process that does nothing else. That is two processes. The
first one starts the second by the same command, and anew whenever the definitions are reloaded; the second loads them
and starts the runs. Importing takes most of the time until a run is at work. After a change of this package, or of what
is installed, processes begin as if nothing were ready.

How Dagster's server makes a process for a run has no public name.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

from dagster._grpc import server

_PACKAGE = Path(__file__).parents[1]
_IMPORTED = "platform_assets.orchestration.imported"
_SELF = "platform_assets.orchestration.servers"

DAEMONS = (
    "AssetDaemon",
    "BackfillDaemon",
    "EventLogConsumerDaemon",  # which tries failed runs again
    "QueuedRunCoordinatorDaemon",
    "SchedulerDaemon",
    "SensorDaemon",
)
"""Dagster's names of the parts that ask a code server; each logs under its name."""

State = frozenset[tuple[str, int, int]]
"""Files, with when they were changed and their size."""


class ReadyProcesses:
    """Make processes as `multiprocessing` does, with their imports done beforehand."""

    def __init__(self, modules: Sequence[str] = (_IMPORTED,), code: Callable[[], State] | None = None) -> None:
        self._code = code or code_on_disk
        self._as_imported = self._code()
        self._anew = multiprocessing.get_context("spawn")
        forkserver.set_forkserver_preload(list(modules))
        forkserver.ensure_running()  # it imports while others do something else
        self.Queue, self.Event = self._anew.Queue, self._anew.Event

    def Process(self, target: Callable[..., object], args: Sequence[Any]) -> BaseProcess:  # noqa: N802 - as there
        """Return a process that will call a function."""
        if self._code() == self._as_imported:
            return ForkServerProcess(target=_to_the_end, args=(dict(os.environ), target, *args))
        return self._anew.Process(target=target, args=tuple(args))


def _to_the_end(environment: dict[str, str], target: Callable[..., object], *args: Any) -> None:
    """Call a function in the environment of the server, then run the functions registered with `atexit`.

    The environment may have changed since the original began, and copies do not run registered functions.
    """
    if environment != dict(os.environ):
        os.environ.clear()
        os.environ.update(environment)
    try:
        target(*args)
    finally:
        cast("Any", atexit)._run_exitfuncs()


def code_on_disk() -> State:
    """Return the state of installed packages and of this package's files, without domains, which are imported later."""
    state: set[tuple[str, int, int]] = set()
    own = (path for path in _PACKAGE.rglob("*.py") if path.relative_to(_PACKAGE).parts[0] != "domains")
    for path in (*own, *{Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}):
        with suppress(FileNotFoundError):  # removed just now, or a dangling link, by which Emacs marks edited files
            found = path.stat()
            state.add((str(path), found.st_mtime_ns, found.st_size))
    return frozenset(state)


class ReadyServer(server.DagsterApiServer):
    """Dagster's own server of definitions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Only now: runs begin with the environment that the server was given.
        self._mp_ctx: Any = ReadyProcesses()


def is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of the log says more than that a code location cannot be loaded."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "DagsterCodeLocationLoadError"


def main() -> None:
    """Do the same as Dagster's command line, until a signal ends it."""
    name = "dagster"
    if sys.argv[1:2] == ["daemon"]:
        name = f"{name}-{sys.argv.pop(1)}"
        for part in DAEMONS:
            logging.getLogger(f"dagster.daemon.{part}").addFilter(is_news)
    else:
        patched = cast("Any", server)
        patched.DagsterApiServer = ReadyServer
        # By which command the first process starts the second.
        patched.get_python_environment_entry_point = lambda executable: [executable, "-m", _SELF]
    [command] = entry_points(group="console_scripts", name=name)
    command.load()()


if __name__ == "__main__":
    main()
