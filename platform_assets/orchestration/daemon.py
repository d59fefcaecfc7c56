"""Dagster's daemon as `up` starts it: its own command, which leaves it to the code server to say why it cannot load.

Each sensor would tell the same with a trace, as often as it is asked while the definitions cannot be loaded.
"""

from __future__ import annotations

import logging

from dagster._core.errors import DagsterCodeLocationLoadError
from dagster._daemon.cli import main as run_daemon
from dagster._daemon.utils import DaemonErrorCapture
from dagster._utils.error import ExceptionInfo, serializable_error_info_from_exc_info
from dagster_shared.error import SerializableErrorInfo


def main() -> None:
    """Run it until a signal ends it."""
    DaemonErrorCapture.process_exception = staticmethod(processed)  # Dagster's own place for it
    run_daemon()


def processed(exc_info: ExceptionInfo, logger: logging.Logger, log_message: str) -> SerializableErrorInfo:
    """What a tick keeps of an error, which is logged unless it is that a code location cannot be loaded."""
    if isinstance(exc_info[1], DagsterCodeLocationLoadError):
        return serializable_error_info_from_exc_info(exc_info)
    return DaemonErrorCapture.default_process_exception(exc_info, logger, log_message)


if __name__ == "__main__":
    main()
