"""Dagster's daemon as `up` starts it: its own command, but for two things.

It leaves it to the code server to say why it cannot load: each sensor would tell the same with a trace, as often as it
is asked while the definitions cannot be loaded. And it looks at the queue as soon as one of its own ticks has asked for
a run, not only at the next interval.
"""

from __future__ import annotations

import logging
import sys
import time
from threading import Event
from typing import Any, cast

from dagster._core.errors import DagsterCodeLocationLoadError
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster._daemon import controller
from dagster._daemon.cli import main as run_daemon
from dagster._daemon.daemon import DaemonIterator, SpanMarker
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon
from dagster._daemon.utils import DaemonErrorCapture
from dagster._utils.error import ExceptionInfo, serializable_error_info_from_exc_info
from dagster_shared.error import SerializableErrorInfo

_ASKED = Event()
"""Whether a run was put into the queue by this process since that was looked at last."""

_STEP_S = 0.5


class PromptQueue(QueuedRunCoordinatorDaemon):
    """Dagster's own, which is told of what this process puts into the queue."""

    def core_loop(self, workspace_process_context: Any, shutdown_event: Any) -> DaemonIterator:
        """Look at the queue until the process ends: after every interval, and whenever something was put into it."""
        while True:
            _ASKED.clear()
            yield SpanMarker.START_SPAN
            try:
                yield from self.run_iteration(workspace_process_context)
            except Exception:  # noqa: BLE001 - as Dagster's own loop does
                info = serializable_error_info_from_exc_info(sys.exc_info())
                self._logger.error("Caught error:\n%s", info)
                yield info
            yield SpanMarker.END_SPAN
            until = time.monotonic() + self.interval_seconds
            # In steps, as Dagster's own loop: whoever asks for each tells of a heartbeat, and stops where it is to end.
            while not _ASKED.wait(_STEP_S) and time.monotonic() < until:
                yield None
            yield None


def main() -> None:
    """Run it until a signal ends it."""
    DaemonErrorCapture.process_exception = staticmethod(processed)  # Dagster's own place for it
    cast("Any", controller).QueuedRunCoordinatorDaemon = PromptQueue
    cast("Any", QueuedRunCoordinator).submit_run = submitted
    run_daemon()


_submit = QueuedRunCoordinator.submit_run


def submitted(coordinator: QueuedRunCoordinator, context: Any) -> Any:
    """Put a run into the queue, and say so to whoever looks at it."""
    run = _submit(coordinator, context)
    _ASKED.set()
    return run


def processed(exc_info: ExceptionInfo, logger: logging.Logger, log_message: str) -> SerializableErrorInfo:
    """What a tick keeps of an error, which is logged unless it is that a code location cannot be loaded."""
    if isinstance(exc_info[1], DagsterCodeLocationLoadError):
        return serializable_error_info_from_exc_info(exc_info)
    return DaemonErrorCapture.default_process_exception(exc_info, logger, log_message)


if __name__ == "__main__":
    main()
